// Runs `oidc-provider` with a client for each form of authentication, and a service that accepts its tokens.
// node oidc.mjs PORT SECRET JWK -> `GET /whoami` answers with the client and the scope of a token. Ends with its process.
import { Provider } from "oidc-provider";

const [port, secret, key] = process.argv.slice(2);
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
    client("private_key_jwt", { jwks: { keys: [JSON.parse(key)] }, token_endpoint_auth_signing_alg: "ES256" }),
  ],
  scopes: ["orders.read"],
  features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false }, resourceIndicators: { enabled: false } },
  enabledJWA: { clientAuthSigningAlgValues: ["ES256"] },
  clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt"],
  ttl: { ClientCredentials: 2 },
});
provider.use(async (context, next) => {
  if (context.path !== "/whoami") return next();
  const [scheme, token] = (context.headers.authorization ?? "").split(" ");
  const found = scheme === "Bearer" ? await provider.ClientCredentials.find(token) : undefined;
  if (found?.isValid) {
    context.body = { client: found.clientId, scope: found.scope };
  } else {
    context.status = 401;
    context.set("WWW-Authenticate", 'Bearer error="invalid_token"');
  }
});
provider.listen(Number(port), "127.0.0.1");
