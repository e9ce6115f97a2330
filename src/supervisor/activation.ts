import { closeSync } from 'node:fs'
import { ConfigError } from '../config/problems.ts'
import type { Config } from '../config.ts'
import type { Inherited } from './listening.ts'

/** The first descriptor that systemd hands over (sd_listen_fds(3)). */
const firstDescriptor = 3
const variables = ['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES'] as const

type Variables = Readonly<Record<string, string | undefined>>

/**
 * The listening sockets that systemd has opened for this process, by the address of the listener that names each in its
 * field `socket` (FileDescriptorName= of the unit). Sockets meant for another process (LISTEN_PID) are ignored.
 * @param environment with LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES (sd_listen_fds_with_names(3))
 * @throws ConfigError naming each listener without its socket, and each socket without a listener
 */
export function activatedSockets(
  { listeners }: Pick<Config, 'listeners'>,
  environment: Variables,
  pid: number,
): Map<string, Inherited> {
  const names = handedOver(environment, pid)
  const problems: string[] = []
  const sockets = new Map<string, Inherited>()
  listeners.forEach(({ address, socket }, index) => {
    if (socket === undefined) return
    const found = names.flatMap((name, at) => (name === socket ? [firstDescriptor + at] : []))
    const [descriptor] = found
    if (descriptor !== undefined && found.length === 1) sockets.set(address, { descriptor, owned: false })
    else problems.push(`listeners.${index}.socket: ${missing(socket, found.length, environment, pid)}`)
  })
  const wanted = new Set(listeners.map(({ socket }) => socket))
  for (const name of new Set(names)) {
    if (!wanted.has(name))
      problems.push(`systemd hands over a socket named ${name}, and no listener has socket: ${name}`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return sockets
}

/**
 * Checks that a supervisor holds, or was handed, the sockets of systemd that the listeners of a new configuration name;
 * systemd opens no more of them.
 * @throws ConfigError naming each listener whose socket it lacks
 */
export function requireSockets({ listeners }: Pick<Config, 'listeners'>, held: ReadonlyMap<string, unknown>): void {
  const problems = listeners.flatMap(({ address, socket }, index) =>
    socket === undefined || held.has(address)
      ? []
      : [`listeners.${index}.socket: systemd hands over sockets at a start alone: restart the service for ${socket}`],
  )
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Closes sockets of listeners that the new configuration lacks, whose connections would never be served. */
export function closeUnwanted({ listeners }: Pick<Config, 'listeners'>, inherited: Map<string, Inherited>): void {
  for (const [address, { descriptor }] of inherited) {
    if (listeners.some((listener) => listener.address === address)) continue
    closeSync(descriptor)
    inherited.delete(address)
  }
}

/** The variables are for one process: no child may take them for its own. */
export function forgetActivation(environment: NodeJS.ProcessEnv): void {
  for (const name of variables) delete environment[name]
}

/** The names of the sockets, in the order of their descriptors; `unknown` if systemd gives no names. */
function handedOver({ LISTEN_FDS: count, LISTEN_PID: process, LISTEN_FDNAMES: names }: Variables, pid: number) {
  if (count === undefined || process !== String(pid)) return []
  if (!/^\d{1,4}$/.test(count)) throw new ConfigError([`LISTEN_FDS: ${JSON.stringify(count)} is no number of sockets`])
  const named = names === undefined ? [] : names.split(':')
  if (names !== undefined && named.length !== Number(count)) {
    throw new ConfigError([`LISTEN_FDNAMES: ${named.length} names for the ${count} sockets of LISTEN_FDS`])
  }
  return Array.from({ length: Number(count) }, (_, at) => named[at] ?? 'unknown')
}

function missing(socket: string, found: number, { LISTEN_PID: process }: Variables, pid: number): string {
  if (found > 1)
    return `systemd hands over ${found} sockets named ${socket}; each listener needs one with a name of its own`
  if (process !== undefined && process !== String(pid)) {
    return `the sockets of systemd are for process ${process} (LISTEN_PID), and this is ${pid}: ExecStart= must name node and src/main.ts, not a script that starts them`
  }
  return `systemd hands over no socket named ${socket}`
}
