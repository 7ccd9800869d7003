import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { EvError, errorCode, errorMessage } from '../platform/error.ts'
import type { HostPlan } from './smtp-host/behaviors.ts'
import type { HostDeps, MailHost } from './smtp-host/host.ts'
import type { Tarpit } from './tarpit.ts'

/** All simulated mail servers, listening on one port. */
type LoopbackNetwork = { readonly port: number; close(): Promise<void> }

type Plan = {
  readonly hosts: readonly MailHost[]
  readonly addresses: ReadonlyMap<string, readonly string[]>
  readonly port: number
  readonly hostDeps: HostDeps
}

/** Attempts to find a port that is free at every address. */
const TRIES_MAX = 10

/** Listens at all addresses; port 0 selects a port that is free at each of them. */
export async function openLoopbackNetwork(plan: Plan): Promise<LoopbackNetwork> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openPorts(plan)
    } catch (cause) {
      const canRetry = plan.port === 0 && tries < TRIES_MAX && errorCode(cause) === 'EADDRINUSE'
      if (!canRetry) throw cannotListen(plan.port, cause)
    }
  }
}

async function openPorts({
  hosts,
  addresses,
  port: requestedPort,
  hostDeps,
}: Plan): Promise<LoopbackNetwork> {
  const sockets = new Set<Socket>()
  const servers: Server[] = []
  let blackHole: BlackHole | undefined
  const close = async () => {
    for (const host of hosts) host.close()
    for (const socket of sockets) socket.destroy()
    await Promise.all(servers.map(server => new Promise(done => server.close(done))))
    await blackHole?.close()
  }
  const ipsOf = (host: MailHost) => (addresses.get(host.name) ?? []).filter(isLoopback)
  let port = requestedPort
  try {
    for (const host of hosts.filter(({ behavior }) => behavior.unreachable === undefined)) {
      for (const ip of ipsOf(host)) {
        const server = await listen(ip, port, socket => {
          sockets.add(socket)
          socket.once('close', () => sockets.delete(socket))
          host.accept(socket, hostDeps)
        })
        servers.push(server)
        port = portOf(server)
      }
    }
    const dropped = hosts
      .filter(({ behavior }) => behavior.unreachable === 'dropped')
      .flatMap(ipsOf)
    if (dropped.length > 0) {
      blackHole = await openBlackHole([...new Set(dropped)], port)
      port = blackHole.port
    }
    return { port: port === 0 ? await findClosedPort() : port, close }
  } catch (cause) {
    await close()
    throw cause
  }
}

/** Returns whether an address is a loopback address, on which the simulator may listen. */
export const isLoopback = (ip: string) => /^127\.|^::1$/.test(ip)

async function listen(
  host: string,
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<Server> {
  // Half-open: a client may close its sending side and still read the reply.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, onConnection)
  server.listen({ host, port, backlog: 1_024 })
  await once(server, 'listening')
  return server
}

/** Returns a port without a listener, for a scenario whose hosts all refuse connections. */
async function findClosedPort(): Promise<number> {
  const server = await listen('127.0.0.1', 0, () => {})
  const port = portOf(server)
  server.close()
  return port
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Returns the error for a port that cannot be opened, with a remedy. */
export function cannotListen(port: number, cause: unknown): EvError {
  const why = errorMessage(cause)
  const sentence =
    LISTEN_FAULTS[errorCode(cause)]?.(port, why) ?? `Cannot start the simulator: ${why}.`
  return new EvError('io', sentence, { cause })
}

const LISTEN_FAULTS: Readonly<Record<string, (port: number, why: string) => string>> = {
  EADDRINUSE: (port, why) =>
    `Port ${port} is in use (${why}). Choose another port, or omit it to use a free one.`,
  EACCES: (port, why) =>
    `No permission to open port ${port} (${why}). Choose a port above 1023, or omit it to use a free one.`,
  EADDRNOTAVAIL: (_, why) =>
    `The simulator needs an address in 127.0.0.0/8 for each server, which this machine does not have (${why}). On macOS, add each with "sudo ifconfig lo0 alias ADDRESS".`,
}

/** Assigns each host its own loopback address, from 127.20.0.1 on; all hosts share one port. */
export function assignAddresses(
  plans: Readonly<Record<string, HostPlan>>,
): Map<string, readonly string[]> {
  const configured = new Map(
    Object.entries(plans).map(([name, { ip }]) => [name, typeof ip === 'string' ? [ip] : ip]),
  )
  const taken = new Set([...configured.values()].flat())
  const free = freeAddresses(taken)
  return new Map([...configured].map(([name, ips]) => [name, ips ?? [free.next().value]]))
}

function* freeAddresses(taken: ReadonlySet<string | undefined>): Generator<string, never> {
  for (let at = 0; ; at += 1) {
    const ip = `127.${20 + Math.floor(at / 62_500)}.${Math.floor(at / 250) % 250}.${(at % 250) + 1}`
    if (!taken.has(ip)) yield ip
  }
}

/** Addresses where connection attempts time out, as behind a firewall that drops packets. */
type BlackHole = { readonly port: number; close(): Promise<void> }

/**
 * Listens in a thread that never accepts a connection, and fills the accept queues: Linux then
 * drops further SYNs. Throws if listening fails.
 */
async function openBlackHole(ips: readonly string[], requestedPort: number): Promise<BlackHole> {
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
