import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** Parameters of the worker thread; setting `stopFlag` ends it. */
export type Tarpit = {
  readonly ips: readonly string[]
  readonly port: number
  readonly backlog: number
  readonly stopFlag: Int32Array
}

/** Listens, reports the port, then blocks the thread so that no connection is accepted. */
async function listen({ ips, port: requestedPort, backlog, stopFlag }: Tarpit): Promise<void> {
  const servers: Server[] = []
  let port = requestedPort
  for (const host of ips) {
    const server = createServer()
    server.listen({ host, port, backlog })
    await once(server, 'listening')
    servers.push(server)
    port = (server.address() as AddressInfo).port
  }
  parentPort?.postMessage(port)
  Atomics.wait(stopFlag, 0, 0)
  process.exit()
}

listen(workerData).catch((error: NodeJS.ErrnoException) => {
  parentPort?.postMessage({ code: error.code, message: error.message })
  process.exit()
})
