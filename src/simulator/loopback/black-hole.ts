import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { EvError } from '../../platform/error.ts'
import type { Tarpit } from './tarpit.ts'

/** Addresses where connections are neither taken nor refused, as behind a firewall that drops packets. */
export type BlackHole = { readonly port: number; close(): Promise<void> }

/**
 * Listens at the addresses in a thread that never takes a connection, and fills the queues of those that
 * wait: Linux then drops what else comes. Throws what listening threw.
 */
export async function digBlackHole(ips: readonly string[], wanted: number): Promise<BlackHole> {
  const limit = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  // Beside this file: pit.ts in src, pit.js in dist.
  const tarpit = new Worker(new URL(`./tarpit${import.meta.url.slice(-3)}`, import.meta.url), {
    workerData: { ips, port: wanted, waiting: WAITING, limit } satisfies Tarpit,
  })
  const [said] = await once(tarpit, 'message')
  if (typeof said !== 'number') throw Object.assign(new EvError('io', said.message), said)
  const fillers = await Promise.all(ips.flatMap(ip => [ip, ip].map(one => wait(one, said))))
  return {
    port: said,
    async close() {
      const ended = once(tarpit, 'exit')
      Atomics.store(limit, 0, 1)
      Atomics.notify(limit, 0)
      for (const socket of fillers) socket.destroy()
      await ended
    },
  }
}

/** The least that Node passes on to `listen`; Linux lets one more wait. */
const WAITING = 1

async function wait(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port })
  await once(socket, 'connect')
  return socket.on('error', () => {})
}
