import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { HostPlan } from '../smtp-host/behaviors.ts'
import type { HostDeps, MailHost } from '../smtp-host/host.ts'
import { type BlackHole, digBlackHole } from './black-hole.ts'

/** All mail servers of the world, listening at one port. */
export type LoopbackNetwork = { readonly port: number; close(): Promise<void> }

type Plan = {
  readonly hosts: readonly MailHost[]
  readonly addresses: ReadonlyMap<string, readonly string[]>
  readonly port: number
  readonly world: HostDeps
}

/** How often a free port is looked for: it must be free at every address. */
const TRIES_MAX = 10

/** Opens every door; port 0 takes one that is free at all addresses. */
export async function openLoopbackNetwork(plan: Plan): Promise<LoopbackNetwork> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openPorts(plan)
    } catch (cause) {
      const canRetry = plan.port === 0 && tries < TRIES_MAX && codeOf(cause) === 'EADDRINUSE'
      if (!canRetry) throw cannotListen(plan.port, cause)
    }
  }
}

async function openPorts({
  hosts,
  addresses,
  port: wanted,
  world,
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
  let port = wanted
  try {
    for (const host of hosts.filter(({ behavior }) => behavior.door === undefined)) {
      for (const ip of ipsOf(host)) {
        const server = await listen(ip, port, socket => {
          sockets.add(socket)
          socket.once('close', () => sockets.delete(socket))
          host.accept(socket, world)
        })
        servers.push(server)
        port = portOf(server)
      }
    }
    const dropping = hosts.filter(({ behavior }) => behavior.door === 'dropped').flatMap(ipsOf)
    if (dropping.length > 0) {
      blackHole = await digBlackHole([...new Set(dropping)], port)
      port = blackHole.port
    }
    return { port: port === 0 ? await closedPort() : port, close }
  } catch (cause) {
    await close()
    throw cause
  }
}

/** Addresses where the world may listen. */
export const isLoopback = (ip: string) => /^127\.|^::1$/.test(ip)

async function listen(
  host: string,
  port: number,
  answer: (socket: Socket) => void,
): Promise<Server> {
  // Half-open: a client may shut its side and still read what it asked for.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, answer)
  server.listen({ host, port, backlog: 1_024 })
  await once(server, 'listening')
  return server
}

/** Where nobody listens: connections to a world of closed doors are refused there. */
async function closedPort(): Promise<number> {
  const server = await listen('127.0.0.1', 0, () => {})
  const port = portOf(server)
  server.close()
  return port
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const codeOf = (error: unknown) =>
  error instanceof Error && 'code' in error ? error.code : undefined

/** Says why a server of the world cannot listen, and what to do. */
export function cannotListen(port: number, cause: unknown): EvError {
  const why = errorMessage(cause)
  const sentence =
    LISTEN_FAULTS[String(codeOf(cause))]?.(port, why) ?? `Cannot start the mail world: ${why}.`
  return new EvError('io', sentence, { cause })
}

const LISTEN_FAULTS: Readonly<Record<string, (port: number, why: string) => string>> = {
  EADDRINUSE: (port, why) =>
    `Port ${port} is taken (${why}). Choose another, or none: then the mail world takes a free one.`,
  EACCES: (port, why) =>
    `Port ${port} may not be opened (${why}). Choose one above 1023, or none: then the mail world takes a free one.`,
  EADDRNOTAVAIL: (_, why) =>
    `The mail world gives each server an address of its own in 127.0.0.0/8, and this machine has not got them (${why}). Linux has; on macOS add them with "ifconfig lo0 alias".`,
}

/** Gives each host an address of its own: all share one port. 127.20.0.1 is the first. */
export function allotAddresses(
  plans: Readonly<Record<string, HostPlan>>,
): Map<string, readonly string[]> {
  const given = new Map(
    Object.entries(plans).map(([name, { ip }]) => [name, typeof ip === 'string' ? [ip] : ip]),
  )
  const taken = new Set([...given.values()].flat())
  const free = freeAddresses(taken)
  return new Map([...given].map(([name, ips]) => [name, ips ?? [free.next().value]]))
}

function* freeAddresses(taken: ReadonlySet<string | undefined>): Generator<string, never> {
  for (let at = 0; ; at += 1) {
    const ip = `127.${20 + Math.floor(at / 62_500)}.${Math.floor(at / 250) % 250}.${(at % 250) + 1}`
    if (!taken.has(ip)) yield ip
  }
}
