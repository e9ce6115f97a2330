import { nodesOf } from '../../config/url.ts'

/** One database node. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly socketPath: string | undefined
  readonly user: string
  readonly password: string
  readonly schema: string
  /** Whether the URL names no other node. */
  readonly alone: boolean
}

const form = 'mysql://user:password@host:port/name (and ?socketPath=/path)'

/**
 * Reads a database URL; several, separated by commas, are the nodes of one cluster in order of preference.
 * The errors never repeat the input, which holds a password.
 */
export function parseTargets(url: string): Target[] {
  const nodes = nodesOf(url)
  return nodes.map((text) => {
    if (!URL.canParse(text)) throw new Error(`the database URL is not of the form ${form}`)
    const parsed = new URL(text)
    const schema = decodeURIComponent(parsed.pathname.slice(1))
    if (parsed.protocol !== 'mysql:' || parsed.hostname === '' || schema === '')
      throw new Error(`the database URL is not of the form ${form}`)
    return {
      host: parsed.hostname,
      port: parsed.port === '' ? 3306 : Number(parsed.port),
      socketPath: parsed.searchParams.get('socketPath') ?? undefined,
      user: decodeURIComponent(parsed.username),
      password: decodeURIComponent(parsed.password),
      schema,
      alone: nodes.length === 1,
    }
  })
}
