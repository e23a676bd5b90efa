// Runs `oidc-provider` with a client for each form of authentication, and a service that accepts its tokens.
// The client `person` is a public one, for which a person logs in.
// node oidc.mjs PORT SECRET JWK [LIFETIME] -> `GET /whoami` answers with the client and the scope of a token, and `GET /renewals` with the
// numbers of renewals and of refusals. LIFETIME is that of access tokens in seconds. Ends with its process.
import { Provider } from "oidc-provider";

const [port, secret, key, lifetime = "2"] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const client = (form, more) => ({
  client_id: form,
  token_endpoint_auth_method: form,
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  scope: "orders.read",
  ...more,
});
const provider = new Provider(issuer, {
  clients: [
    client("client_secret_basic", { client_secret: secret }),
    client("client_secret_post", { client_secret: secret }),
    {
      client_id: "person",
      application_type: "native",
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      redirect_uris: ["http://127.0.0.1/callback"],
      response_types: ["code"],
      scope: "openid offline_access orders.read",
    },
    client("private_key_jwt", { jwks: { keys: [JSON.parse(key)] }, token_endpoint_auth_signing_alg: "ES256" }),
  ],
  scopes: ["openid", "offline_access", "orders.read"],
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: { enabled: false },
  },
  enabledJWA: { clientAuthSigningAlgValues: ["ES256"] },
  clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"],
  ttl: { AccessToken: Number(lifetime), ClientCredentials: Number(lifetime) },
});
const counts = { renewals: 0, refusals: 0 };
provider.on("grant.success", ({ oidc }) => {
  if (oidc.params.grant_type === "refresh_token") counts.renewals += 1;
});
provider.on("grant.error", () => {
  counts.refusals += 1;
});
provider.use(async (context, next) => {
  if (context.path === "/renewals") {
    context.body = counts;
    return;
  }
  if (context.path !== "/whoami") return next();
  const [scheme, token] = (context.headers.authorization ?? "").split(" ");
  const found = scheme === "Bearer" ? (await provider.ClientCredentials.find(token)) ?? (await provider.AccessToken.find(token)) : undefined;
  if (found?.isValid) {
    context.body = { client: found.clientId, scope: found.scope };
  } else {
    context.status = 401;
    context.set("WWW-Authenticate", 'Bearer error="invalid_token"');
  }
});
provider.listen(Number(port), "127.0.0.1");
