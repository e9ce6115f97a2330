import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../clock.ts'
import { loadLibrary } from '../binding.ts'
import { Failure } from '../faults.ts'
import { Connection } from './connection.ts'
import type { Arguments, Operation } from './operations.ts'
import { pack, unpack, wipe } from './parcel.ts'

/** One call for a thread. The slot and the epoch say which connection it belongs to. */
export interface Order {
  readonly epoch: number
  readonly slot: Uint8Array
  readonly name: Operation
  readonly args: unknown
}

export type Reply =
  | { readonly result: unknown }
  | { readonly fate: Failure['fate']; readonly code: number; readonly name: Operation }
  | { readonly bug: string }

/**
 * A worker thread of the threads' executor. The main thread has initialised the module and logged in, which holds for
 * the process; this thread only opens sessions of its own, and never calls C_Initialize, C_Login or C_Finalize.
 */
if (parentPort !== null) {
  const port = parentPort
  const lib = loadLibrary(String(workerData))
  let epoch: number | undefined
  let connection: Connection | undefined

  port.on('message', (order: Order) => {
    let args: unknown
    try {
      args = unpack(order.args)
      if (connection === undefined || epoch !== order.epoch) {
        connection = new Connection(lib, order.slot, systemClock)
        epoch = order.epoch
      }
      const result = connection.run(order.name, args as Arguments<Operation>)
      const { value, moved } = pack({ result })
      // Arguments and results may be secret; the result sent is a copy.
      wipe(result)
      port.postMessage(value, moved)
    } catch (error) {
      port.postMessage(reply(error, order.name))
    } finally {
      wipe(args)
    }
  })
}

function reply(error: unknown, name: Operation): Reply {
  if (error instanceof Failure) return { fate: error.fate, code: error.code, name }
  return { bug: error instanceof Error ? `${error.name}: ${error.message}` : 'unknown' }
}
