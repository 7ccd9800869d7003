import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { type Daemon, missingFiles, startDaemon, untilListening } from './server.ts'

const FIXTURES = join(import.meta.dirname, '../../fixtures/real')

/** A resolver (unbound) in front of a name server (NSD). */
export type RealDns = {
  /** The resolver, `address:port`. */
  readonly resolver: string
  /** The name server, `address:port`. */
  readonly authority: string
  stop(): Promise<void>
}

export type DnsPlace = {
  readonly dir: string
  /** A loopback address with a free port 53. */
  readonly nameServer: string
  /** Domains of mail servers, with the address of their exchanger. */
  readonly domains: Readonly<Record<string, string>>
}

/** Returns why the DNS cannot run here, or null. */
export const missingDns = () => missingFiles('NSD', 'usr/sbin/nsd', 'usr/sbin/unbound')

/** Starts both. No query leaves this machine: only `test.` and 127.in-addr.arpa exist. */
export async function startDns({ dir, nameServer, domains }: DnsPlace): Promise<RealDns> {
  const port = await freePort()
  const mute = await muteServer(nameServer)
  const files = {
    'test.zone': testZone(domains),
    '127.zone': readFileSync(join(FIXTURES, '127.zone'), 'utf8'),
    'broken.zone': 'broken.test. this is no zone\n',
    'nsd.conf': nsdConf(dir, nameServer, port),
    'unbound.conf': unboundConf(dir, nameServer, { nsd: port, mute: mute.address().port }),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  const nsd = startDaemon({
    name: 'nsd',
    dir,
    command: 'usr/sbin/nsd',
    args: ['-d', '-c', join(dir, 'nsd.conf')],
  })
  const unbound = startDaemon({
    name: 'unbound',
    dir,
    command: 'usr/sbin/unbound',
    args: ['-d', '-c', join(dir, 'unbound.conf')],
  })
  const stop = () => stopAll([unbound, nsd], mute)
  try {
    await untilListening(nsd, [nameServer], port)
    await untilListening(unbound, [nameServer], 53)
  } catch (error) {
    await stop()
    throw error
  }
  return { resolver: `${nameServer}:53`, authority: `${nameServer}:${port}`, stop }
}

async function stopAll(daemons: readonly Daemon[], mute: Socket): Promise<void> {
  for (const daemon of daemons) await daemon.stop()
  mute.close()
}

/** Starts a server that never answers, like a name server behind a firewall. */
async function muteServer(address: string): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, address)
  await once(socket, 'listening')
  return socket
}

/** Returns the zone of the fixtures with an exchanger for each domain of a server. */
function testZone(domains: Readonly<Record<string, string>>): string {
  const records = Object.entries(domains).flatMap(([domain, ip]) => [
    `${domain}. MX 10 mx.${domain}.`,
    `mx.${domain}. A ${ip}`,
  ])
  const known = domains['known.test'] ?? '127.0.2.1'
  const written = readFileSync(join(FIXTURES, 'test.zone'), 'utf8').replaceAll('@known@', known)
  return `${written}\n${records.join('\n')}\n${manyExchangers(known)}\n`
}

/** More records than fit into a UDP answer (RFC 9715: 1,400 octets), so that TCP is needed. */
function manyExchangers(ip: string): string {
  const host = (n: number) => `exchanger-number-${n}-with-a-long-name.of-many`
  return Array.from(
    { length: 60 },
    (_, n) => `many MX ${10 + n} ${host(n)}\n${host(n)} A ${ip}`,
  ).join('\n')
}

const nsdConf = (dir: string, address: string, port: number) => `
server:
  ip-address: ${address}@${port}
  server-count: 1
  username: ""
  chroot: ""
  database: ""
  zonesdir: "${dir}"
  pidfile: "${dir}/nsd.pid"
  xfrdfile: "${dir}/xfrd.state"
  zonelistfile: "${dir}/zone.list"
  xfrdir: "${dir}"
  rrl-ratelimit: 0
remote-control:
  control-enable: no
${zone('test', 'test.zone')}${zone('127.in-addr.arpa', '127.zone')}${zone('broken.test', 'broken.zone')}`

const zone = (name: string, file: string) => `zone:\n  name: ${name}\n  zonefile: ${file}\n`

/** The resolver configuration, with delegations to defective servers. */
const unboundConf = (dir: string, address: string, ports: { nsd: number; mute: number }) => `
server:
  interface: ${address}
  port: 53
  username: ""
  chroot: ""
  directory: "${dir}"
  pidfile: ""
  use-syslog: no
  do-ip6: no
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  qname-minimisation: no
  module-config: "validator iterator"
  # RFC 4035: the parent has a DS record, but the zone is unsigned.
  trust-anchor: "bogus.test. DS 12345 13 2 ${'ab'.repeat(32)}"
  local-zone: "." static
  local-zone: "test." transparent
  local-zone: "127.in-addr.arpa." transparent
remote-control:
  control-enable: no
${stub('test', `${address}@${ports.nsd}`)}${stub('127.in-addr.arpa', `${address}@${ports.nsd}`)}
${stub('broken.test', `${address}@${ports.nsd}`)}${stub('bogus.test', `${address}@${ports.nsd}`)}
${stub('lame.test', '127.0.9.1@53')}${stub('silent.test', `${address}@${ports.mute}`)}`

const stub = (name: string, server: string) =>
  `stub-zone:\n  name: "${name}"\n  stub-addr: ${server}\n`
