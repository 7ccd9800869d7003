import type { Server } from 'node:net'
import { EvError } from '../../platform/error.ts'

/** Listens there. Throws EvError that says why it cannot. */
export function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException) => reject(cannotListen(host, port, cause))
    server.once('error', fail)
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/**
 * Connections that the system keeps for us while the event loop turns. It leaves a SYN above it unanswered, which the
 * client sends again after 1, 3 and 7 s (RFC 6298). Linux takes no more than net.core.somaxconn, 4,096 since 5.4.
 */
const BACKLOG = 4_096

function cannotListen(host: string, port: number, cause: NodeJS.ErrnoException): EvError {
  const place = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const [why, remedy] = FAULTS[cause.code ?? ''] ?? [cause.message, 'Name another with --listen.']
  return new EvError('io', `ev cannot listen on ${place}: ${why}. ${remedy}`, { cause })
}

const FAULTS: Readonly<Record<string, [why: string, remedy: string]>> = {
  EADDRINUSE: [
    'another program does already',
    'Stop that one, or name another port with --listen.',
  ],
  EACCES: [
    'this user may not',
    'Ports below 1024 need the right for it (AmbientCapabilities=CAP_NET_BIND_SERVICE of systemd); or name a higher one with --listen and put a proxy before it.',
  ],
  EADDRNOTAVAIL: [
    'this machine has no such address',
    'Name one of its own with --listen, or 0.0.0.0 for all.',
  ],
  ENOTFOUND: ['no such host is known', 'Name an address of this machine with --listen.'],
}
