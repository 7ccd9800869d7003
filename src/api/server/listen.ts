import type { Server } from 'node:net'
import { EvError } from '../../platform/error.ts'

/** Starts to listen. Throws EvError with the reason and a remedy. */
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
 * Connections that the kernel queues until the event loop accepts them. It does not answer a SYN
 * above this, and the client retransmits after 1, 3 and 7 s (RFC 6298). Linux caps it at
 * net.core.somaxconn, 4,096 since 5.4.
 */
const BACKLOG = 4_096

function cannotListen(host: string, port: number, cause: NodeJS.ErrnoException): EvError {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const [why, remedy] = REMEDIES[cause.code ?? ''] ?? [
    cause.message,
    'Choose another address with --listen.',
  ]
  return new EvError('io', `ev cannot listen on ${address}: ${why}. ${remedy}`, { cause })
}

const REMEDIES: Readonly<Record<string, [why: string, remedy: string]>> = {
  EADDRINUSE: [
    'the port is already in use',
    'Stop the other program, or choose another port with --listen.',
  ],
  EACCES: [
    'permission denied',
    'Ports below 1024 require CAP_NET_BIND_SERVICE (AmbientCapabilities= of systemd). Or choose a higher port with --listen, behind a proxy.',
  ],
  EADDRNOTAVAIL: [
    'this machine has no such address',
    'Choose one of its addresses with --listen, or 0.0.0.0 for all.',
  ],
  ENOTFOUND: ['the host name is unknown', 'Choose an address of this machine with --listen.'],
}
