import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNodeResolver } from '../../src/engine/dns/node-resolver.ts'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import { createEngine, type Engine, type EngineOptions } from '../../src/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { missingDns, type RealDns, startDns } from '../real/dns.ts'
import { freeNameServer, type RealServer } from '../real/server.ts'
import { freePort } from './free-port.ts'

/** Real mail servers with their DNS, and engines that use only these. */
export type RealServers = {
  /** Creates an engine whose rate only the servers limit. */
  engine(options?: EngineOptions): Engine
  readonly dns: RealDns
  /** A resolver in real time, for an engine with a faster clock. */
  readonly resolver: Resolver
  /** Returns the folder of a server, which has its logs. */
  dirOf(server: RealServer): string
  close(): Promise<void>
}

/** Returns why one of these cannot run here, or null. */
export const missingOf = (servers: readonly RealServer[]): string | null =>
  missingDns() ?? servers.map(server => server.missing()).find(why => why !== null) ?? null

/** Whether a missing server fails the tests, as in CI; otherwise they are skipped. */
export const REQUIRED = process.env.EV_REAL_SERVERS === 'required'

/** Starts the DNS and all servers; if one fails, the others are stopped. */
export async function startRealServers(servers: readonly RealServer[]): Promise<RealServers> {
  const home = mkdtempSync(join(tmpdir(), 'ev-real-'))
  // The users of the servers need access.
  chmodSync(home, 0o755)
  const dirOf = ({ name }: { name: string }) => join(home, name)
  for (const one of [{ name: 'dns' }, ...servers]) mkdirSync(dirOf(one))
  const nameServer = await freeNameServer()
  const port = await freePort()
  const domains = Object.assign({}, ...servers.map(server => server.domains))
  const dns = await startDns({ dir: dirOf({ name: 'dns' }), nameServer, domains })
  const engines: Engine[] = []
  const resolver = createNodeResolver({ clock: systemClock, servers: [dns.resolver] })
  const close = async () => {
    await Promise.all(engines.map(engine => engine.close()))
    resolver.close()
    await Promise.all(servers.map(server => server.stop()))
    await dns.stop()
    rmSync(home, { recursive: true, force: true })
  }
  const starts = await Promise.allSettled(
    servers.map(server => server.start({ dir: dirOf(server), port, nameServer })),
  )
  const failed = starts.find(start => start.status === 'rejected')
  if (failed !== undefined) {
    await close()
    throw failed.reason
  }
  return {
    dns,
    resolver,
    dirOf,
    close,
    engine(options = {}) {
      const engine = createEngine({
        dns: [dns.resolver],
        smtpPort: port,
        allowRanges: ['127.0.0.0/8'],
        specialDomains: true,
        helo: 'probe.test',
        sessionsPerSecond: 1_000,
        ...options,
      })
      engines.push(engine)
      return engine
    },
  }
}
