// Runs `oidc-provider` for clients that register themselves. It issues access tokens for any resource: JWT, or opaque ones that the
// client `gate` can ask about.
// node oidc_resource.mjs PORT jwt|opaque SECRET-OF-GATE. Ends with its process.
import { Provider } from "oidc-provider";

const [port, accessTokenFormat, secret] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    { client_id: "gate", client_secret: secret, grant_types: [], redirect_uris: [], response_types: [] },
  ],
  scopes: ["openid", "offline_access", "mcp:call"],
  features: {
    introspection: { enabled: true, allowedPolicy: () => true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => ({
        accessTokenFormat,
        accessTokenTTL: 600,
        audience: resource,
        jwt: { sign: { alg: "RS256" } },
        scope: "mcp:call",
      }),
      useGrantedResource: () => true,
    },
  },
});
provider.listen(Number(port), "127.0.0.1");
