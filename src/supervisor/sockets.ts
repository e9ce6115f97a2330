import { rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'

/**
 * Removes the unix socket that a killed server left behind, so that the address can be bound again. A socket
 * that still answers stays, and binding it fails.
 * @param addresses as configured; only `unix:/PATH` matters here
 */
export async function removeDeadSockets(addresses: readonly string[]): Promise<void> {
  for (const address of addresses) {
    const path = address.startsWith('unix:') ? address.slice('unix:'.length) : undefined
    if (path === undefined || !statSync(path, { throwIfNoEntry: false })?.isSocket()) continue
    if (!(await answers(path))) rmSync(path, { force: true })
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
