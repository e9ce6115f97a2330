import { randomUUID } from 'node:crypto'
import { beforeEach } from 'vitest'
import { type Cluster, useCluster } from '../../keys/support.ts'
import { type BuilderNode, type Ca, createCa, createSet, nodeAt, read, revoke, targetOf } from './world.ts'

/** A worker that builds lists, with a CA and a mount of its own for each test. */
export class Worker {
  cluster!: Cluster
  node!: BuilderNode
  ca!: Ca
  mount!: string

  async renew(): Promise<void> {
    this.node = nodeAt(this.cluster.place.database)
    this.ca = await createCa(this.cluster)
    this.mount = randomUUID()
  }

  /** Builds the lists of the test's CA, and reads them as a relying party does. */
  async build(more: Parameters<typeof targetOf>[2] = {}) {
    const { ca, node } = this
    const built = await node.builder.build(targetOf(ca, this.mount, more))
    const [der, delta] = [await node.whole(built.complete), await node.whole(built.delta)]
    return { row: built.complete, der, complete: read(der, ca), delta: read(delta, ca) }
  }

  revoke(count: number, more: Parameters<typeof revoke>[3] = {}) {
    return revoke(this.node.database, this.ca.crlIssuer, count, more)
  }

  /** The manifest of the test's CA. */
  manifest() {
    const { node, ca } = this
    return node.database.snapshot((q) => node.builder.manifests.read(q, ca.crlIssuer))
  }

  alarms(): readonly string[] {
    return this.node.alarms.map(({ text }) => text)
  }
}

/** @param name of the token */
export function useWorker(name: string): Worker {
  const worker = new Worker()
  useCluster(name, async (begun) => {
    worker.cluster = begun
    await createSet(begun.place.database)
  })
  beforeEach(() => worker.renew())
  return worker
}
