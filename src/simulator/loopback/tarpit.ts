import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** What the thread is told: where to listen, how many may wait, and what ends it. */
export type Tarpit = {
  readonly ips: readonly string[]
  readonly port: number
  readonly waiting: number
  readonly limit: Int32Array
}

/** Listens everywhere, says at which port, and stands still: nobody takes what comes. */
async function listen({ ips, port: wanted, waiting, limit }: Tarpit): Promise<void> {
  const servers: Server[] = []
  let port = wanted
  for (const host of ips) {
    const server = createServer()
    server.listen({ host, port, backlog: waiting })
    await once(server, 'listening')
    servers.push(server)
    port = (server.address() as AddressInfo).port
  }
  parentPort?.postMessage(port)
  Atomics.wait(limit, 0, 0)
  process.exit()
}

listen(workerData).catch((error: NodeJS.ErrnoException) => {
  parentPort?.postMessage({ code: error.code, message: error.message })
  process.exit()
})
