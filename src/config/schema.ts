import { type Static, Type } from 'typebox'

/**
 * The only schema of the configuration. `description` explains a field's allowed values where its type does not; the
 * error for a wrong value quotes it. The keyword `secret` is our own: it keeps a wrong value out of that error.
 */
const section = { additionalProperties: false }
/** A section of alternatives: exactly one of its fields. */
const exactlyOne = { additionalProperties: false, minProperties: 1, maxProperties: 1 }

const path = (what: string) => Type.String({ minLength: 1, description: `the path of ${what}` })
const whole = (minimum: number, maximum: number, fallback: number) =>
  Type.Integer({ minimum, maximum, default: fallback })
const flag = () => Type.Boolean({ default: false })

const proxies = Type.Array(Type.String(), {
  minItems: 1,
  description: 'a list of IP addresses and CIDR blocks, or unix for the peers of a unix socket',
})

const listener = Type.Object(
  {
    address: Type.String({
      pattern: String.raw`^(unix:/.+|\[[0-9a-fA-F:.]+\]:\d{1,5}|[^:\s/]+:\d{1,5})$`,
      description: 'host:port, [IPv6]:port or unix:/PATH',
    }),
    socket: Type.Optional(
      Type.String({
        pattern: '^[!-9;-~]{1,255}$',
        description: 'the name of a socket that systemd has opened (FileDescriptorName=), without a colon',
      }),
    ),
    tls: Type.Optional(
      Type.Object(
        {
          certificate: path('a PEM file with the certificate and its chain'),
          key: path('the PEM file of the private key'),
          minimumVersion: Type.Enum(['1.2', '1.3'], { default: '1.2' }),
          clientCa: Type.Optional(path('a PEM file of the CAs whose client certificates are accepted')),
        },
        section,
      ),
    ),
    maxRequestBytes: whole(1024, 1 << 30, 32 << 20),
    forwardedFor: Type.Optional(
      Type.Object(
        {
          addresses: proxies,
          hopSkips: whole(0, 32, 0),
          rejectNotPresent: Type.Boolean({ default: true }),
          rejectNotAuthorized: Type.Boolean({ default: true }),
        },
        section,
      ),
    ),
    proxyProtocol: Type.Optional(Type.Object({ addresses: proxies }, section)),
  },
  section,
)

const datagramAddress = Type.String({
  pattern: String.raw`^(\[[0-9a-fA-F:.]+\]|[^:\s/]+):(?!0+$)([0-5]?\d{1,4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$`,
  description: 'host:port or [IPv6]:port',
})

/** The UDP address at which this node takes hints that another has committed, and the nodes to which it sends them. */
const cluster = Type.Object(
  {
    nudge: Type.Optional(
      Type.Object({ address: datagramAddress, peers: Type.Array(datagramAddress, { default: [] }) }, section),
    ),
  },
  { ...section, default: {} },
)

const database = Type.Object(
  {
    url: Type.String({
      pattern: String.raw`^mysql://[^/\s]+/[^/?\s]\S*$`,
      description:
        'mysql://user@host:port/name, with ?socketPath=/PATH for a unix socket; several, separated by commas, are one cluster',
      secret: true,
    }),
    passwordFile: Type.Optional(path('a file that contains only the password')),
    poolSize: whole(1, 1000, 8),
    tls: Type.Optional(
      Type.Object(
        {
          ca: Type.Optional(path('a PEM file of the CAs that may have signed the server certificate')),
          certificate: Type.Optional(path('the PEM file of our client certificate')),
          key: Type.Optional(path('the PEM file of its private key')),
        },
        section,
      ),
    ),
  },
  section,
)

const pkcs11 = Type.Object(
  {
    library: path('the PKCS#11 module, a shared library'),
    libraryParameters: Type.Optional(Type.String({ description: "the module's own C_Initialize parameters (NSS)" })),
    environment: Type.Record(Type.String(), Type.String(), {
      default: {},
      description: 'names and values set only where the module is loaded, e.g. SOFTHSM2_CONF',
    }),
    token: Type.Object(
      {
        label: Type.Optional(Type.String({ minLength: 1, maxLength: 32, description: 'a text of 1 to 32 characters' })),
        serial: Type.Optional(
          Type.String({ minLength: 1, maxLength: 16, description: 'a text of 1 to 16 characters' }),
        ),
        slot: Type.Optional(Type.Integer({ minimum: 0 })),
      },
      exactlyOne,
    ),
    pin: Type.Object(
      {
        file: Type.Optional(path('a file that contains only the PIN')),
        environment: Type.Optional(
          Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', description: 'the name of an environment variable' }),
        ),
        prompt: Type.Optional(Type.Literal(true)),
      },
      exactlyOne,
    ),
    executor: Type.Enum(['auto', 'inline', 'threads'], { default: 'auto' }),
    threads: whole(1, 64, 4),
    callDeadlineSeconds: whole(1, 600, 10),
    managedKeys: flag(),
  },
  section,
)

/** A module whose tokens hold managed keys; never the token of our own keys. */
const pkcs11Library = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$',
      description: 'a name of 1 to 64 letters, digits, _ . -',
    }),
    library: path('the PKCS#11 module, a shared library'),
    libraryParameters: Type.Optional(Type.String({ description: "the module's own C_Initialize parameters (NSS)" })),
    environment: Type.Record(Type.String(), Type.String(), {
      default: {},
      description: 'names and values set only while the module is loaded, e.g. SOFTHSM2_CONF',
    }),
    threads: whole(1, 64, 4),
    callDeadlineSeconds: whole(1, 600, 10),
  },
  section,
)

const limits = Type.Object(
  {
    headersSeconds: whole(1, 600, 10),
    requestSeconds: whole(1, 3600, 60),
    idleSeconds: whole(1, 3600, 65),
    leastBytesPerSecond: whole(1, 1_000_000_000, 2048),
    connections: whole(1, 1_000_000, 10_000),
    drainSeconds: whole(1, 600, 30),
    workerMemoryMebibytes: whole(128, 1 << 20, 1024),
  },
  { ...section, default: {} },
)

/** The shutdown of a node, requested by a signal. */
const drain = Type.Object(
  { announceSeconds: whole(0, 300, 0), keepAliveSeconds: whole(0, 60, 1) },
  { ...section, default: {} },
)

export const schema = Type.Object(
  {
    listeners: Type.Array(listener, { minItems: 1, default: [{ address: '127.0.0.1:8200' }] }),
    database,
    pkcs11,
    pkcs11Libraries: Type.Array(pkcs11Library, { default: [] }),
    strict: flag(),
    fips: flag(),
    workers: Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal('auto')], { default: 'auto' }),
    clusterName: Type.String({ minLength: 1, maxLength: 64, default: 'strongroom' }),
    site: Type.String({
      pattern: '^[A-Za-z0-9_-]{1,32}$',
      default: 'default',
      description: 'a name of 1 to 32 letters, digits, - or _',
    }),
    cluster,
    stateDirectory: Type.String({
      minLength: 1,
      default: '/var/lib/strongroom',
      description: 'a directory of this node',
    }),
    caches: Type.Object(
      { handles: whole(16, 1_000_000, 5000), rings: whole(16, 10_000_000, 10_000) },
      { ...section, default: {} },
    ),
    coherence: Type.Object({ leaseMilliseconds: whole(250, 60_000, 1000) }, { ...section, default: {} }),
    limits,
    drain,
    log: Type.Object(
      { level: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], { default: 'info' }) },
      { ...section, default: {} },
    ),
    audit: Type.Object(
      {
        durability: Type.Enum(['write', 'fdatasync'], { default: 'write' }),
        directory: Type.Optional(
          path('the only directory that may hold audit files; audit/ in the state directory when absent'),
        ),
        headRetentionDays: whole(1, 36_500, 90),
      },
      { ...section, default: {} },
    ),
  },
  section,
)

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** The configuration with every default filled in; frozen all the way down. Holds no secret. */
export type Config = Frozen<Static<typeof schema>>
