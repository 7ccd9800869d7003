import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { EvError } from '../../platform/error.ts'
import type { Tarpit } from './tarpit.ts'

/** Addresses where connection attempts time out, as behind a firewall that drops packets. */
export type BlackHole = { readonly port: number; close(): Promise<void> }

/**
 * Listens in a thread that never accepts a connection, and fills the accept queues: Linux then
 * drops further SYNs. Throws if listening fails.
 */
export async function openBlackHole(
  ips: readonly string[],
  requestedPort: number,
): Promise<BlackHole> {
  const stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  // The worker file beside this one: tarpit.ts in src, tarpit.js in dist.
  const worker = new Worker(new URL(`./tarpit${import.meta.url.slice(-3)}`, import.meta.url), {
    workerData: { ips, port: requestedPort, backlog: BACKLOG, stopFlag } satisfies Tarpit,
  })
  const [message] = await once(worker, 'message')
  if (typeof message !== 'number') throw Object.assign(new EvError('io', message.message), message)
  const fillers = await Promise.all(ips.flatMap(ip => [ip, ip].map(one => fillQueue(one, message))))
  return {
    port: message,
    async close() {
      const exited = once(worker, 'exit')
      Atomics.store(stopFlag, 0, 1)
      Atomics.notify(stopFlag, 0)
      for (const socket of fillers) socket.destroy()
      await exited
    },
  }
}

/** The minimum that Node passes to `listen`; Linux queues one connection more. */
const BACKLOG = 1

async function fillQueue(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port })
  await once(socket, 'connect')
  return socket.on('error', () => {})
}
