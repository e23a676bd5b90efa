// Runs `oidc-provider` as the authorization server of a service that accepts assertions of other issuers (RFC 7523), which it does not do
// itself, and the service.
// node oidc_jwt_bearer.mjs PORT jwt|opaque SECRET LIFETIME [IDENTITY-PROVIDER]. LIFETIME is that of access tokens in seconds. Ends with its process.
// It accepts tokens of a cluster with the issuer `CLUSTER`, whose key it has, and assertions of the identity provider (ID-JAG).
// `GET /project?sub=S&iss=I&ttl=T&n=N` answers with a token as the cluster would project it: N becomes its `jti`, and I is the cluster by default.
// `GET /whoami` is the service, and `GET /seen` answers with the `jti` of the accepted assertions and with the tokens that were received.
import { createLocalJWKSet, createRemoteJWKSet, decodeJwt, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import { errors, Provider } from "oidc-provider";

const [port, accessTokenFormat, secret, lifetime, identityProvider] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const CLUSTER = "https://kubernetes.default.svc.cluster.local";
const SERVICE = `${issuer}/service`;

const cluster = await generateKeyPair("ES256");
const clusterKeys = { keys: [{ ...(await exportJWK(cluster.publicKey)), alg: "ES256", kid: "cluster", use: "sig" }] };
const client = (id, method, grant, more) => ({
  client_id: id,
  token_endpoint_auth_method: method,
  grant_types: [grant],
  redirect_uris: [],
  response_types: [],
  scope: "orders.read",
  ...more,
});
const resourceServer = { accessTokenFormat, accessTokenTTL: Number(lifetime), audience: SERVICE, jwt: { sign: { alg: "RS256" } }, scope: "orders.read" };
const provider = new Provider(issuer, {
  clients: [
    client("workload", "none", JWT_BEARER),
    client("gate-at-service", "client_secret_basic", JWT_BEARER, { client_secret: secret }),
    // The assertion with which this client proves its identity is in a file, too.
    client("federated", "private_key_jwt", "client_credentials", { jwks: clusterKeys, token_endpoint_auth_signing_alg: "ES256" }),
  ],
  scopes: ["openid", "orders.read"],
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: { enabled: true, defaultResource: () => SERVICE, getResourceServerInfo: () => resourceServer },
  },
  enabledJWA: { clientAuthSigningAlgValues: ["ES256"] },
  clientAuthMethods: ["client_secret_basic", "private_key_jwt", "none"],
});

const ownKeys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const ofCluster = { keys: createLocalJWKSet(clusterKeys), checks: { issuer: CLUSTER, audience: issuer } };
const ofIdentityProvider = identityProvider && {
  keys: createRemoteJWKSet(new URL(`${identityProvider}/jwks`)),
  checks: { issuer: identityProvider, audience: issuer, typ: "oauth-id-jag+jwt", requiredClaims: ["jti", "client_id"], maxTokenAge: "5m" },
};
// Other errors have a fixed description.
const invalidGrant = (why) => new errors.CustomOIDCProviderError("invalid_grant", why);
const accepted = [];
const received = [];

provider.registerGrantType(
  JWT_BEARER,
  async (context) => {
    const { assertion, scope } = context.oidc.params;
    const { client } = context.oidc;
    const trusted = client.clientId === "workload" ? ofCluster : ofIdentityProvider;
    const { payload } = await jwtVerify(assertion, trusted.keys, { requiredClaims: ["exp", "sub"], ...trusted.checks }).catch((error) => {
      throw invalidGrant(`the assertion is refused: ${error.message}`);
    });
    if (trusted === ofIdentityProvider) {
      if (payload.client_id !== client.clientId) throw invalidGrant("the assertion is for another client");
      if (payload.resource !== SERVICE) throw new errors.InvalidTarget();
      if (accepted.includes(payload.jti)) throw invalidGrant("the assertion was used before");
    }
    accepted.push(payload.jti);
    const token = new provider.AccessToken({ accountId: payload.sub, client, scope });
    token.resourceServer = new provider.ResourceServer(SERVICE, resourceServer);
    context.body = { access_token: await token.save(), expires_in: Number(lifetime), scope, token_type: "Bearer" };
  },
  ["assertion", "scope", "resource"],
);
provider.on("grant.success", ({ oidc }) => {
  if (oidc.params.client_assertion) accepted.push(decodeJwt(oidc.params.client_assertion).jti);
});

// Returns the subject of a token for the service. A client that acts for itself is its own subject.
async function subjectOf(text) {
  if (accessTokenFormat === "jwt") {
    const { payload } = await jwtVerify(text, ownKeys, { issuer, audience: SERVICE, typ: "at+jwt" }).catch(() => ({ payload: {} }));
    return payload.sub;
  }
  const found = (await provider.AccessToken.find(text)) ?? (await provider.ClientCredentials.find(text));
  return found?.isValid && found.aud === SERVICE ? (found.accountId ?? found.clientId) : undefined;
}

provider.use(async (context, next) => {
  if (context.path === "/project") {
    const { sub, iss = CLUSTER, ttl = "600", n } = context.query;
    const token = new SignJWT({ "kubernetes.io": { namespace: "tools", serviceaccount: { name: "gate" } } });
    token.setProtectedHeader({ alg: "ES256", kid: "cluster" }).setIssuer(iss).setSubject(sub).setAudience(issuer).setJti(n);
    const now = Math.floor(Date.now() / 1000);
    context.body = await token.setIssuedAt(now).setNotBefore(now).setExpirationTime(now + Number(ttl)).sign(cluster.privateKey);
  } else if (context.path === "/seen") {
    context.body = { accepted, received };
  } else if (context.path === "/whoami") {
    const [, text = ""] = (context.headers.authorization ?? "").split(" ");
    received.push(text);
    const subject = await subjectOf(text);
    if (subject) {
      context.body = { subject };
    } else {
      context.status = 401;
      context.set("WWW-Authenticate", 'Bearer error="invalid_token"');
    }
  } else {
    return next();
  }
});
provider.listen(Number(port), "127.0.0.1");
