import { promises } from 'node:dns'
import pLimit from 'p-limit'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { type Random, systemRandom } from '../../platform/random.ts'
import { DnsQuery, type DnsReply, type DnsTransport } from './query.ts'
import type { DnsAnswer, RecordType, Resolver } from './resolver.ts'
import { DnsFailover } from './server-list.ts'
import { queryOverTcp } from './tcp-transport.ts'
import { UdpTransport } from './udp-transport.ts'

export type NodeResolverOptions = {
  readonly clock: Clock
  /** `HOST[:PORT]` each, IPv6 in brackets, asked in this order; the system's own when left out or empty. */
  readonly servers?: readonly string[]
  /** Longest time for one question over all servers and tries; waiting for one's turn does not count. */
  readonly timeoutMs?: number
  /** Questions on the wire at once; the others wait their turn. */
  readonly inFlightMax?: number
  /** Draws the IDs of queries. */
  readonly random?: Random
  /** Names the system's servers; for tests. */
  readonly systemServers?: () => readonly string[]
}

/**
 * The DNS over UDP, over TCP where a reply is truncated, and over node:dns where only the system can
 * ask. An abort or `close` answers `timeout` at once. Names are A-labels: one that DNS cannot carry
 * is `no-name`. Throws `bad_config` for a server that is no IP address.
 */
export function createNodeResolver(options: NodeResolverOptions): Resolver & { close(): void } {
  const { clock, timeoutMs = TIMEOUT_MS } = options
  const given = options.servers ?? []
  for (const server of given) checkServer(server)
  const servers = new DnsFailover({ clock, given, system: options.systemServers ?? systemServers })
  const random = options.random ?? systemRandom
  const udp = new UdpTransport(random)
  const wireFor = createLines(udp, random, timeoutMs)
  const turn = pLimit(options.inFlightMax ?? IN_FLIGHT_MAX)
  const open = new Set<DnsQuery>()
  let closed = false

  const resolve = async (
    text: string,
    type: RecordType,
    signal?: AbortSignal,
  ): Promise<DnsAnswer<RecordType>> => {
    const name = text.replace(/\.$/, '')
    if (!isDnsName(name)) return { fault: 'no-name' }
    if (closed || signal?.aborted) return { fault: 'timeout' }
    const question = new DnsQuery({
      wire: wireFor(name, type),
      servers,
      clock,
      timeoutMs,
    })
    const giveUp = () => question.giveUp()
    signal?.addEventListener('abort', giveUp, { once: true })
    open.add(question)
    turn(() => question.ask())
    const answer = await question.answer
    open.delete(question)
    signal?.removeEventListener('abort', giveUp)
    return answer
  }
  return {
    resolve: resolve as Resolver['resolve'],
    close() {
      closed = true
      for (const question of open) question.giveUp()
      udp.close()
    },
  }
}

/** As long as dig waits. A verifier that gives up says `unknown`, so it may give up. */
const TIMEOUT_MS = 5 * SECOND
/** Far above it UDP answers drop: with 1,000 in flight a loopback server lost 288 of 10,000 (measured, Node 24). */
const IN_FLIGHT_MAX = 200
/** An answer of 64 KB can hold thousands of records; nobody honest has so many. */
const RECORDS_MAX = 256

/** Lengths of RFC 1035 §2.3.4. Other bytes would be read as escapes or cut: given "\0.test" node:dns asks for the root. */
const isDnsName = (name: string) =>
  name.length <= 253 && /^[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*$/.test(name)

/**
 * Sends a query over UDP, and again over TCP when the reply is truncated (RFC 7766 §5). Only
 * node:dns can ask the system's resolver as it is configured.
 */
function createLines(udp: UdpTransport, random: Random, timeoutMs: number) {
  return (name: string, type: RecordType): DnsTransport =>
    server => {
      if (server === AS_CONFIGURED) return queryOverNodeDns(name, type, timeoutMs)
      const sent = udp.query(server, name, type)
      let isDone = false
      let hangUp = () => sent.cancel()
      const said = sent.reply.then(async (reply): Promise<DnsReply> => {
        if (reply !== 'truncated') return limitRecords(reply)
        if (isDone) return { code: 'ECANCELLED' }
        const again = queryOverTcp(server, { name, type }, random)
        hangUp = () => again.cancel()
        return limitRecords(await again.reply)
      })
      return {
        said,
        hangUp() {
          isDone = true
          hangUp()
        },
      }
    }
}

const limitRecords = (reply: DnsReply): DnsReply =>
  'records' in reply ? { ...reply, records: reply.records.slice(0, RECORDS_MAX) } : reply

/**
 * node:dns reports response codes that it does not know (6 to 11) as an empty answer. Each query has
 * a Resolver of its own, as `cancel` ends all queries of one.
 */
function queryOverNodeDns(
  name: string,
  type: RecordType,
  timeoutMs: number,
): ReturnType<DnsTransport> {
  const resolver = new promises.Resolver({ timeout: timeoutMs, maxTimeout: timeoutMs, tries: 1 })
  const ask = async (): Promise<DnsReply> => {
    try {
      const records = await lookUp(resolver, name, type)
      // An alias without what was asked for behind it.
      return records.length === 0 ? { code: 'ENODATA' } : limitRecords({ records })
    } catch (error) {
      return { code: (error as NodeJS.ErrnoException).code ?? 'EBADRESP' }
    }
  }
  return { said: ask(), hangUp: () => resolver.cancel() }
}

async function lookUp(resolver: promises.Resolver, name: string, type: RecordType) {
  if (type === 'A') return resolver.resolve4(name)
  if (type === 'AAAA') return resolver.resolve6(name)
  if (type === 'TXT') return (await resolver.resolveTxt(name)).map(strings => strings.join(''))
  if (type === 'PTR') return resolver.resolvePtr(name)
  const records = await resolver.resolveMx(name)
  return records.map(({ priority, exchange }) => ({ preference: priority, host: exchange }))
}

/** Stands for the system's resolver as it is. */
const AS_CONFIGURED = ''

/** The system's DNS servers as it names them; the empty text where only the system can ask them. */
export function systemServers(): readonly string[] {
  const servers = new promises.Resolver().getServers()
  // setServers drops the zone of fe80::1%eth0, which home routers announce: then node:dns picks the server itself.
  const linkLocal = servers.some(server => /^\[?fe[89ab]/i.test(server))
  return linkLocal || servers.length === 0 ? [AS_CONFIGURED] : servers
}

function checkServer(text: string): void {
  try {
    const port = Number(/^(?:\[.*\]|[\d.]+):(\d+)$/.exec(text)?.[1] ?? 53)
    // setServers takes port 0 for 53, on Node 22 any number, and drops a zone.
    if (port < 1 || port > 65_535 || text.includes('%'))
      throw new Error('port out of range, or a zone')
    new promises.Resolver().setServers([text])
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `"${text}" is not a DNS server: write an IP address and if need be a port, such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:5353`,
      { cause },
    )
  }
}
