//! The registry of diagnostic codes. A code is never reused, and the first two digits of its number identify the phase.
//!
//! `PTC01xx` JSON and YAML, `PTC02xx` config shape, `PTC03xx` credentials and headers, `PTC04xx` URLs, `PTC05xx` OpenAPI,
//! `PTC06xx` lock and upstream listings, `PTC07xx` limits and names, `PTC08xx` programs, `PTC09xx` build, `PTC10xx` configs of MCP
//! clients, `PTC11xx` policy.

use super::Severity;

macro_rules! codes {
    ($($variant:ident = $code:literal $severity:ident $title:literal;)*) => {
        /// A diagnostic code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $variant),* }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// Returns the code with a name.
            pub fn find(name: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|code| code.name() == name)
            }

            /// Returns the stable name, such as `PTC0101`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $code),* }
            }

            /// Returns the default severity. A diagnostic may have another, for example if its definition was reviewed.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity),* }
            }

            /// Returns a short title.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),* }
            }
        }
    };
}

codes! {
    JsonSyntax = "PTC0101" Error "not valid JSON";
    DuplicateKey = "PTC0102" Error "a key is given twice in one object";
    TooDeep = "PTC0103" Error "arrays and objects nested too deeply";
    TooLarge = "PTC0104" Error "a file of more than 1 GiB";
    ConfigUnreadable = "PTC0105" Error "a config that cannot be read";
    YamlSyntax = "PTC0106" Error "not a YAML document that can be read";
    BeyondJson = "PTC0107" Error "a comment or trailing comma where only JSON is allowed";
    TomlSyntax = "PTC0108" Error "not a TOML document that can be read";

    UnknownKey = "PTC0201" Error "a key that is not part of the config";
    MissingKey = "PTC0202" Error "a required key is missing";
    WrongType = "PTC0203" Error "a value of the wrong type";
    UnknownTransport = "PTC0204" Error "a transport that does not exist";
    OldTransport = "PTC0205" Error "a transport name of earlier versions";
    EmptyValue = "PTC0206" Error "an empty text or list where something is needed";
    OutOfRange = "PTC0207" Error "a number outside of its range";
    RepeatedItem = "PTC0208" Warning "the same item twice in one list";
    BadPlaceholder = "PTC0209" Error "a placeholder that cannot be read";
    LiteralPlaceholder = "PTC0210" Warning "a placeholder where none is resolved";
    BadVariableName = "PTC0211" Error "not a name of an environment variable";
    NulCharacter = "PTC0212" Error "a NUL character in what a process is given";
    NoUpstreams = "PTC0213" Warning "a config without upstreams";
    SelfAsUpstream = "PTC0214" Error "an upstream that is the server itself";
    CommandNotFound = "PTC0215" Warning "a command or folder that is not on this machine";
    UnpinnedPackage = "PTC0216" Warning "a package that is fetched without a fixed version";
    CommandLine = "PTC0217" Warning "a command line where the name of a program belongs";
    InheritsEverything = "PTC0218" Warning "a child that gets the server's whole environment";
    WithheldVariable = "PTC0219" Error "a variable that no child inherits";
    BadPaging = "PTC0220" Error "a description of pages that cannot be read";
    NotANote = "PTC0221" Error "a code in `silence` that is not that of a note";
    SandboxPath = "PTC0222" Error "a path of a sandbox that does not exist";
    NoSandbox = "PTC0223" Note "a child process without a sandbox";

    UnknownSource = "PTC0301" Error "a credential source that does not exist";
    ReservedSource = "PTC0302" Error "a credential source that is reserved";
    LiteralSecret = "PTC0303" Warning "a secret written into the config";
    UnresolvedBinding = "PTC0304" Error "a binding that no credential has";
    UnusedBinding = "PTC0305" Warning "a credential that nothing uses";
    UnknownScheme = "PTC0306" Error "an auth scheme that does not exist";
    SchemeHintMismatch = "PTC0307" Warning "a credential used by another scheme than its hint says";
    BadHeaderName = "PTC0308" Error "not a name of a header";
    ReservedHeader = "PTC0309" Error "a header that cannot be set here";
    BadHeaderValue = "PTC0310" Error "a header value with characters that no header has";
    RepeatedHeader = "PTC0311" Error "one header set twice";
    BadBasicSecret = "PTC0312" Error "a secret that is not a user and password";
    ShortSecret = "PTC0313" Error "a secret too short to be redacted";
    SecretInPlainSight = "PTC0314" Warning "what looks like a secret where none belongs";
    SecretUnavailable = "PTC0315" Error "a secret that is not there";
    OauthScopes = "PTC0316" Error "an element of `scopes` that is not a scope";
    OauthGrant = "PTC0317" Error "a `grant` of OAuth that does not exist";
    OauthTokenUrl = "PTC0318" Error "a `token_url` beside a grant whose endpoints are in metadata";
    OauthClientId = "PTC0319" Error "a `client_id` that no authorization server accepts";
    OauthBinding = "PTC0320" Error "a `binding` of a client that has no credential";
    OauthClientAuth = "PTC0321" Error "a `client_auth` that does not exist, or that the client cannot have";
    OauthKeyId = "PTC0322" Error "a `key_id` of a client that signs no assertions";
    OauthIssuer = "PTC0323" Error "an `issuer` with a query, or without effect";
    OauthResource = "PTC0324" Error "a `resource` that is not an absolute URI, or without effect";
    OauthSubject = "PTC0325" Error "a `subject` beside a grant that exchanges no token";
    OauthSubjectTokenType = "PTC0326" Error "a `subject_token_type` that does not exist, or without effect";
    OauthAudience = "PTC0327" Error "an `audience` without a token exchange";
    OauthIdentityProvider = "PTC0328" Error "an `identity_provider` beside another grant, or without an authorization server";
    TokenNotInFile = "PTC0329" Error "an OAuth token or assertion whose credential is not a file";

    BadUrl = "PTC0401" Error "not a usable URL";
    InsecureUrl = "PTC0402" Error "a URL without TLS";
    InsecureAuth = "PTC0403" Error "credentials sent without TLS";
    SecretInUrl = "PTC0404" Error "user or password inside a URL";
    UrlParts = "PTC0405" Error "a fragment, or a query in a `base_url`";
    NeedlessOptIn = "PTC0406" Warning "an insecure opt-in that nothing needs";
    SchemaOnOtherOrigin = "PTC0407" Warning "credentials sent to another host for the schema";

    SchemaSource = "PTC0501" Error "not exactly one source of the OpenAPI document";
    OverrideNotIncluded = "PTC0502" Error "an override for an operation that is not included";

    SchemaUnreadable = "PTC0510" Error "an OpenAPI document that cannot be read";
    NotOpenApi = "PTC0511" Error "not an OpenAPI document of version 3.0, 3.1 or 3.2";
    UnknownOperation = "PTC0512" Error "an operation that the document does not have";
    AmbiguousOperation = "PTC0513" Error "an operation id that the document gives twice";
    WriteNotAllowed = "PTC0514" Error "an operation that writes, and an entry that does not allow it";
    RequestBody = "PTC0515" Error "a request body that cannot be sent";
    SecretParameter = "PTC0516" Error "a required parameter that carries a secret";
    ParameterLeftOut = "PTC0517" Note "an optional parameter that calls cannot send";
    BadParameter = "PTC0518" Error "a parameter that cannot be sent as described";
    PathTemplate = "PTC0519" Error "a path template whose variables are not declared";
    ForeignServer = "PTC0520" Error "an operation on an origin that is not listed";
    BadReference = "PTC0523" Error "a $ref that leads nowhere";
    NameCollision = "PTC0524" Error "two operations with the same exposed name";
    DefaultArgs = "PTC0525" Error "default arguments that do not fit the operation";
    BadName = "PTC0526" Error "a name that cannot be exposed";
    PatternLeftOut = "PTC0527" Note "operations that a pattern leaves out";
    EmptyPattern = "PTC0528" Error "a pattern that includes nothing";
    IncludedAndExcluded = "PTC0529" Error "an operation both included and excluded";
    DocumentSlip = "PTC0530" Note "a mistake in a document that is ignored";
    OtherServer = "PTC0531" Note "a base_url that the document does not name";
    ForeignReference = "PTC0532" Error "a $ref out of the document's folder or origin";
    TooManyFiles = "PTC0533" Error "a document of too many or too large files";

    MissingCredential = "PTC0540" Error "an operation without the credential that it needs";
    CredentialScheme = "PTC0541" Warning "an operation that needs another credential than the entry sends";
    CredentialPlace = "PTC0542" Warning "a credential in another place, or under another name, than operations need";
    UnusedCredential = "PTC0543" Warning "a credential that no operation uses";
    UnsupportedScheme = "PTC0544" Warning "an operation with an authentication scheme that is not supported";

    LockVersion = "PTC0601" Error "a lock file of another format";
    LockShape = "PTC0602" Error "a lock file that no compiler wrote";
    LockDigest = "PTC0603" Error "a lock file that does not match its digest";
    LockStale = "PTC0604" Error "a lock file that does not cover the config";
    ToolNotOffered = "PTC0605" Error "a tool in include_tools that the upstream does not offer";
    UpstreamUnreachable = "PTC0606" Error "an upstream that could not be asked for its tools";
    BadListing = "PTC0607" Error "a tool definition that breaks the protocol";
    NoTools = "PTC0608" Warning "an upstream without tools";
    ToolAdded = "PTC0610" Note "a tool that the lock file does not have";
    ToolRemoved = "PTC0611" Error "a pinned tool that is gone";
    InputBreaking = "PTC0612" Error "a pinned tool that rejects arguments that it accepted before";
    InputWidened = "PTC0613" Note "a pinned tool that takes more than before";
    InputChanged = "PTC0614" Warning "a pinned tool that bounds its arguments differently";
    OutputChanged = "PTC0615" Warning "a pinned tool that answers in another shape";
    DescriptionChanged = "PTC0616" Warning "a pinned tool or upstream that describes itself differently";
    AnnotationChanged = "PTC0617" Warning "a pinned tool whose annotations changed";
    BecameDestructive = "PTC0618" Error "a pinned tool that no longer declares itself read-only or non-destructive";
    RequestChanged = "PTC0619" Warning "a pinned operation that is requested differently";
    DefinitionChanged = "PTC0620" Note "a pinned definition with a change that does not affect calls";
    HiddenCharacters = "PTC0621" Error "a definition with invisible characters";
    AddressesModels = "PTC0622" Error "a definition that contains instructions for models";
    LargeDefinition = "PTC0623" Warning "a tool definition that is too large to be useful to a model";
    NamesUnknownTool = "PTC0624" Warning "a definition that names a tool which programs cannot call";
    SecretInDefinition = "PTC0625" Warning "a definition that holds a secret, or what looks like one";
    AcceptsNothing = "PTC0626" Warning "an acceptance that no definition needs";
    NotReadOnly = "PTC0627" Error "a tool that is not a read, in a config that permits only reads";
    DocumentFileChanged = "PTC0628" Note "a file of a document whose operations changed";
    NoArguments = "PTC0629" Note "a server of which no tool describes an argument";
    LockWithoutAddress = "PTC0630" Warning "a lock file without the commands and URLs of its upstreams";
    TransportChanged = "PTC0631" Error "a pinned server that is reached over another HTTP transport";
    OperationRenamed = "PTC0632" Error "a pinned operation with another `operationId`";
    ObservedChanged = "PTC0633" Note "another observed shape of a pinned tool's answers";
    AuthorizationServerChanged = "PTC0634" Error "a pinned upstream that names another authorization server or resource";
    ScopesChanged = "PTC0635" Warning "a pinned upstream that asks for other scopes";
    ExampleRefused = "PTC0636" Warning "an example of a call that the schema of its tool refuses";
    OtherAuthorizationServer = "PTC0637" Note "an authorization server in the config other than the one in the lock file";

    UpstreamName = "PTC0701" Error "not a name that an upstream can have";
    UpstreamLikeNamespace = "PTC0702" Warning "an upstream named like a namespace";
    UpstreamsAlike = "PTC0703" Warning "two upstream names that are easily confused";
    ProgramName = "PTC0704" Error "not a name that a program can have";
    ToolName = "PTC0705" Warning "a tool whose name is not plain";
    ToolsAlike = "PTC0706" Warning "tools whose names are easily confused";
    DeploymentName = "PTC0707" Error "not a name that a deployment can have";

    ProgramFault = "PTC0801" Error "a program that does not compile";
    CallFails = "PTC0802" Error "an upstream call that fails whenever it is made";
    CallDoubtful = "PTC0803" Warning "an upstream call that is likely not meant so";
    PathNotInSchema = "PTC0804" Warning "a place in a result that the output schema does not have";
    UncheckedResult = "PTC0805" Warning "the value of a result that may be a failure";
    ProgramCost = "PTC0806" Note "what a program may call";
    ProgramUnreadable = "PTC0807" Error "a stored program that cannot be read";
    ProgramSchema = "PTC0808" Error "a schema of a stored program that cannot be used";
    ResultUsedAsValue = "PTC0809" Error "a result map that is used as if it were its :value";
    CallNotChecked = "PTC0810" Note "a call whose name or arguments are computed";
    UndeclaredArgument = "PTC0811" Warning "an argument that a stored program reads and does not declare";
    ProgramBreaks = "PTC0812" Error "a program that the current tools break";
    ProgramUnaffected = "PTC0813" Note "what is known of a program whose tools may have changed";
    PathNotObserved = "PTC0814" Warning "a place in a result that no observed answer has";
    TestsNotRun = "PTC0815" Warning "tests that `diff` and `update` cannot run";

    PromptTooLarge = "PTC0901" Error "an answer to tools/list that is larger than --max-prompt-bytes";
    CommandNotInImage = "PTC0902" Warning "a command that the image lacks";
    HostPath = "PTC0903" Warning "a path of this machine in a container";
    LoopbackInContainer = "PTC0904" Warning "a loopback address in a container";
    FetchedAtStart = "PTC0905" Warning "a package that a container fetches at each start";
    UnpinnedBaseImage = "PTC0906" Note "a base image whose tag can move to another image";
    RelativeInBundle = "PTC0907" Error "a relative path in a desktop bundle";
    SecretInBundle = "PTC0908" Error "a secret in a desktop bundle";
    HostPathInBundle = "PTC0909" Warning "a path of this machine in a desktop bundle";
    NotInBundle = "PTC0910" Note "what a desktop bundle needs and does not contain";

    UnknownClientConfig = "PTC1001" Error "a file that is not the config of a known client";
    EntryLeftOut = "PTC1002" Warning "an entry that cannot be carried over";
    EntryDisabled = "PTC1003" Note "an entry that its client has switched off";
    SettingLeftOut = "PTC1004" Warning "a setting that cannot be carried over";
    ClientSetting = "PTC1005" Note "a setting that concerns the client alone";
    SecretReplaced = "PTC1006" Note "a secret that became a reference";
    EntryRenamed = "PTC1007" Note "an entry under another name";
    EntryRepeated = "PTC1008" Note "an entry that another file has too";
    NeedsDecision = "PTC1009" Warning "an entry that works only after a decision";

    PolicyUpstream = "PTC1101" Error "a policy that names an upstream that the config does not have";
    PolicyTool = "PTC1102" Error "a policy that names a tool that its upstream does not have";
    PolicyArgument = "PTC1103" Error "a policy that restricts an argument that a tool does not have";
    RuleName = "PTC1104" Error "two rules of a policy with the same name";
    RuleUnreachable = "PTC1105" Warning "a rule of a policy that decides about no call";
    ScopeGrantsNothing = "PTC1106" Warning "a scope that grants nothing";
    ToolWithoutCaller = "PTC1107" Note "tools that no rule of the policy permits";
    PolicyValue = "PTC1108" Error "a policy that permits a value that an argument cannot have";
}
