// Runs `oidc-provider` with token exchange (RFC 8693), which it does not have itself, and a service that accepts exchanged tokens only.
// node oidc_exchange.mjs PORT jwt|opaque SECRET AUDIENCE-OF-GATE. Ends with its process.
// `GET /mint?account=A` answers with an access token for the gate, `GET /whoami` is the service, and `GET /seen` answers with the number of
// exchanges and the tokens that the service has received. The subject `eve` may not be exchanged.
import { createRemoteJWKSet, jwtVerify } from "jose";
import { errors, Provider } from "oidc-provider";

const [port, accessTokenFormat, secret, gate] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const SERVICE = `${issuer}/service`;

const provider = new Provider(issuer, {
  clients: [{ client_id: "gate", client_secret: secret, grant_types: [EXCHANGE], redirect_uris: [], response_types: [] }],
  scopes: ["openid", "mcp:call", "orders.read"],
  features: { introspection: { enabled: true, allowedPolicy: () => true } },
});
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

async function issue(accountId, audience, scope, format) {
  const client = await provider.Client.find("gate");
  const token = new provider.AccessToken({ accountId, client, scope });
  const jwt = { sign: { alg: "RS256" } };
  token.resourceServer = new provider.ResourceServer(audience, { accessTokenFormat: format, accessTokenTTL: 600, audience, jwt, scope });
  return token.save();
}

async function subjectOf(token) {
  if (accessTokenFormat === "opaque") return (await provider.AccessToken.find(token))?.accountId;
  const { payload } = await jwtVerify(token, keys, { issuer, audience: gate }).catch(() => ({ payload: {} }));
  return payload.sub;
}

let exchanges = 0;
const seen = [];
provider.registerGrantType(
  EXCHANGE,
  async (context) => {
    const { subject_token, subject_token_type, requested_token_type, audience, scope } = context.oidc.params;
    if (subject_token_type !== ACCESS_TOKEN || requested_token_type !== ACCESS_TOKEN) throw new errors.InvalidRequest("wrong types");
    if (audience !== SERVICE) throw new errors.InvalidTarget();
    const subject = await subjectOf(subject_token);
    if (!subject) throw new errors.InvalidGrant("the subject token is not known");
    // Other errors have a fixed description.
    if (subject === "eve") throw new errors.CustomOIDCProviderError("invalid_grant", "the subject token may not be exchanged");
    exchanges += 1;
    context.body = {
      access_token: await issue(subject, audience, scope, "opaque"),
      expires_in: 600,
      issued_token_type: ACCESS_TOKEN,
      scope,
      token_type: "Bearer",
    };
  },
  ["subject_token", "subject_token_type", "requested_token_type", "audience", "scope", "resource"],
);

provider.use(async (context, next) => {
  if (context.path === "/mint") {
    context.body = await issue(context.query.account, gate, "mcp:call", accessTokenFormat);
  } else if (context.path === "/seen") {
    context.body = { exchanges, tokens: seen };
  } else if (context.path === "/whoami") {
    const [, text] = (context.headers.authorization ?? "").split(" ");
    seen.push(text);
    const token = text && (await provider.AccessToken.find(text));
    if (token?.isValid && token.aud === SERVICE) {
      context.body = { subject: token.accountId, scope: token.scope };
    } else {
      context.status = 401;
      context.set("WWW-Authenticate", 'Bearer error="invalid_token"');
    }
  } else {
    return next();
  }
});
provider.listen(Number(port), "127.0.0.1");
