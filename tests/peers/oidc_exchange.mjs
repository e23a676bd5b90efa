// Runs `oidc-provider` with token exchange (RFC 8693), which it does not have itself, and a service that accepts exchanged tokens only.
// node oidc_exchange.mjs PORT jwt|opaque SECRET AUDIENCE-OF-GATE [AUTHORIZATION-SERVER]. Ends with its process.
// For the authorization server of another service it issues assertions (ID-JAG) instead, to its client `gate-at-service`.
// `GET /mint?account=A` answers with an access token for the gate, `GET /whoami` is the service, and `GET /seen` answers with the number of
// exchanges and the tokens that the service has received. The subject `eve` may not be exchanged.
import { randomUUID } from "node:crypto";
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import { errors, Provider } from "oidc-provider";

const [port, accessTokenFormat, secret, gate, authorizationServer] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const SERVICE = `${issuer}/service`;
const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const kid = randomUUID();

const provider = new Provider(issuer, {
  clients: [{ client_id: "gate", client_secret: secret, grant_types: [EXCHANGE], redirect_uris: [], response_types: [] }],
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", kid, use: "sig" }] },
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

// Issues an Identity Assertion JWT Authorization Grant.
function assertion(subject, audience, claims) {
  const token = new SignJWT({ client_id: "gate-at-service", ...claims }).setProtectedHeader({ alg: "RS256", kid, typ: "oauth-id-jag+jwt" });
  token.setIssuer(issuer).setSubject(subject).setAudience(audience).setJti(randomUUID());
  return token.setIssuedAt().setExpirationTime("5m").sign(privateKey);
}

let exchanges = 0;
const seen = [];
provider.registerGrantType(
  EXCHANGE,
  async (context) => {
    const { subject_token, subject_token_type, requested_token_type, audience, scope, resource } = context.oidc.params;
    const isAssertion = authorizationServer !== undefined;
    const expected = isAssertion ? [ID_JAG, authorizationServer] : [ACCESS_TOKEN, SERVICE];
    if (subject_token_type !== ACCESS_TOKEN || requested_token_type !== expected[0]) throw new errors.InvalidRequest("wrong types");
    if (audience !== expected[1]) throw new errors.InvalidTarget();
    const subject = await subjectOf(subject_token);
    if (!subject) throw new errors.InvalidGrant("the subject token is not known");
    // Other errors have a fixed description.
    if (subject === "eve") throw new errors.CustomOIDCProviderError("invalid_grant", "the subject token may not be exchanged");
    exchanges += 1;
    const issued = isAssertion ? assertion(subject, audience, { resource, scope }) : issue(subject, audience, scope, "opaque");
    context.body = {
      access_token: await issued,
      expires_in: isAssertion ? 300 : 600,
      issued_token_type: expected[0],
      scope,
      token_type: isAssertion ? "N_A" : "Bearer",
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
