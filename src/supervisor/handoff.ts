import type { Worker } from 'node:cluster'

interface Handoff {
  readonly cmd: 'NODE_CLUSTER'
  readonly act?: string
  readonly seq?: number
  /** In the worker's answer: the sequence number of the message it answers. */
  readonly ack?: number
}

/**
 * Closes the connections that node:cluster handed to a worker which ended before it took them. Node (24.21,
 * internal/cluster/round_robin_handle) forgets them: they would stay open in this process, and their clients would wait
 * until they tire. The messages looked at here are Node's own; a test kills a worker under connections and fails should
 * they change.
 */
export function closeUntaken(worker: Worker): void {
  const untaken = new Map<number, { close(): void }>()
  const { process: child } = worker
  const send = child.send.bind(child)
  child.send = (message: unknown, ...rest: unknown[]): boolean => {
    const { cmd, act, seq } = message as Handoff
    const handle = rest[0] as { close(): void } | null | undefined
    if (cmd === 'NODE_CLUSTER' && act === 'newconn' && seq !== undefined && handle) untaken.set(seq, handle)
    return Reflect.apply(send, child, [message, ...rest])
  }
  child.on('internalMessage', ({ cmd, ack }: Handoff) => {
    if (cmd === 'NODE_CLUSTER' && ack !== undefined) untaken.delete(ack)
  })
  // Not at 'disconnect': with a connection under way it never comes.
  child.once('exit', () => {
    for (const handle of untaken.values()) handle.close()
  })
}
