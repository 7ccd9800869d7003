import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { EvError, messageOf } from '../base/error.ts'
import type { Around, MailHost } from './mail-host.ts'
import type { HostPlan } from './scenario.ts'

/** All mail servers of the world, listening at one port. */
export type Street = { readonly port: number; close(): Promise<void> }

type Plan = {
  readonly hosts: readonly MailHost[]
  readonly addresses: ReadonlyMap<string, readonly string[]>
  readonly port: number
  readonly world: Around
}

/** How often a free port is looked for: it must be free at every address. */
const TRIES_MAX = 10

/** Opens every door; port 0 takes one that is free at all addresses. */
export async function openStreet(plan: Plan): Promise<Street> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openDoors(plan)
    } catch (cause) {
      const mayTryAgain = plan.port === 0 && tries < TRIES_MAX && codeOf(cause) === 'EADDRINUSE'
      if (!mayTryAgain) throw cannotListen(cause)
    }
  }
}

async function openDoors({ hosts, addresses, port: wanted, world }: Plan): Promise<Street> {
  const sockets = new Set<Socket>()
  const servers: Server[] = []
  const close = async () => {
    for (const host of hosts) host.close()
    for (const socket of sockets) socket.destroy()
    await Promise.all(servers.map(server => new Promise(done => server.close(done))))
  }
  let port = wanted
  try {
    for (const host of hosts) {
      for (const ip of host.temper.dead === true ? [] : loopback(addresses.get(host.name))) {
        const server = await listen(ip, port, socket => {
          sockets.add(socket)
          socket.once('close', () => sockets.delete(socket))
          host.accept(socket, world)
        })
        servers.push(server)
        port = portOf(server)
      }
    }
    return { port, close }
  } catch (cause) {
    await close()
    throw cause
  }
}

const loopback = (ips: readonly string[] = []) => ips.filter(ip => /^127\.|^::1$/.test(ip))

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

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const codeOf = (error: unknown) =>
  error instanceof Error && 'code' in error ? error.code : undefined

const cannotListen = (cause: unknown) =>
  new EvError(
    'io',
    codeOf(cause) === 'EADDRNOTAVAIL'
      ? `The mail world gives each server an address of its own in 127.0.0.0/8, and this machine has not got them (${messageOf(cause)}). Linux has; on macOS add them with "ifconfig lo0 alias".`
      : `Cannot start the mail world: ${messageOf(cause)}`,
    { cause },
  )

/** Gives each host an address of its own: all share one port. 127.20.0.1 is the first. */
export function allotAddresses(
  plans: Readonly<Record<string, HostPlan>>,
): Map<string, readonly string[]> {
  let next = 0
  return new Map(
    Object.entries(plans).map(([name, { ip }]) => {
      if (ip !== undefined) return [name, typeof ip === 'string' ? [ip] : ip]
      const at = next++
      return [
        name,
        [`127.${20 + Math.floor(at / 62_500)}.${Math.floor(at / 250) % 250}.${(at % 250) + 1}`],
      ]
    }),
  )
}
