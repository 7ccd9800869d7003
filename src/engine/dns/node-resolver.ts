import { promises } from 'node:dns'
import { onAbort } from '../../platform/abort.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { systemRandom } from '../../platform/random.ts'
import { InFlightLimit } from './in-flight-limit.ts'
import { DnsQuery, type DnsReply, type DnsTransport } from './query.ts'
import type { DnsAnswer, RecordType, Resolver } from './resolver.ts'
import { DnsFailover } from './server-list.ts'
import { queryOverTcp } from './tcp-transport.ts'
import { UdpTransport } from './udp-transport.ts'

export type NodeResolverOptions = {
  readonly clock: Clock
  /** `HOST[:PORT]` each, IPv6 in brackets, in order of use; default: the servers of the system. */
  readonly servers?: readonly string[]
  /** Time limit of one query over all servers and attempts, without the wait for a slot. */
  readonly timeoutMs?: number
  /** Maximum number of queries in flight, at most that of `InFlightLimit`; others wait for a slot. */
  readonly inFlightMax?: number
  /** Returns the servers of the system; for tests. */
  readonly systemServers?: () => readonly string[]
}

/**
 * Resolves over UDP, over TCP if a reply is truncated, and over node:dns if only the system can
 * reach its servers. An abort or `close` ends a query with `timeout` at once. Names are A-labels; a
 * name that DNS cannot carry is `no-name`. Throws `bad_config` for a server that is not an IP
 * address.
 */
export function createNodeResolver(options: NodeResolverOptions): Resolver & { close(): void } {
  const { clock, timeoutMs = TIMEOUT_MS } = options
  const configured = options.servers ?? []
  for (const server of configured) validateServer(server)
  const servers = new DnsFailover({
    clock,
    configured,
    system: options.systemServers ?? systemServers,
  })
  const udp = new UdpTransport(systemRandom, clock)
  const transportFor = createTransports(udp, timeoutMs)
  const limit = new InFlightLimit(options.inFlightMax)
  const open = new Set<DnsQuery>()
  /** The queries that wait for a slot, the oldest first. */
  const waiting: DnsQuery[] = []
  let inFlight = 0
  let closed = false

  const startWaiting = () => {
    while (inFlight < limit.value) {
      const query = waiting.shift()
      if (query === undefined) return
      query.start(limit.reductions)
      if (query.limitReductions !== null) inFlight++
    }
  }

  /** Adapts the limit to what became of a query. Returns true if it should be sent again. */
  const onEnded = ({ limitReductions, delivery }: DnsQuery): boolean => {
    if (limitReductions === null) return false
    const withThis = inFlight--
    if (delivery === 'refused') return limit.onRefused(limitReductions, withThis)
    if (delivery === 'lost') limit.onLost(limitReductions)
    else if (delivery === 'first' && waiting.length > 0) limit.onAnswered()
    return false
  }

  /** Follows aliases that a server did not follow, as mail servers do (RFC 5321 §5.1). */
  const resolve = async (
    name: string,
    type: RecordType,
    signal?: AbortSignal,
  ): Promise<DnsAnswer<RecordType>> => {
    let answer = await resolveOnce(name, type, signal)
    for (let n = 0; n < ALIASES_MAX; n++) {
      if (!('alias' in answer) || answer.alias === undefined) return answer
      answer = await resolveOnce(answer.alias, type, signal)
    }
    return { fault: 'server' }
  }

  const resolveOnce = async (
    text: string,
    type: RecordType,
    signal?: AbortSignal,
  ): Promise<DnsAnswer<RecordType>> => {
    const name = text.replace(/\.$/, '')
    if (!isDnsName(name)) return { fault: 'no-name' }
    if (closed || signal?.aborted) return { fault: 'timeout' }
    const transport = transportFor(name, type)
    for (let isAgain = false; ; isAgain = true) {
      const query = new DnsQuery({ transport, servers, clock, timeoutMs })
      const unsubscribe = signal && onAbort(signal, () => query.cancel())
      open.add(query)
      if (isAgain) waiting.unshift(query)
      else waiting.push(query)
      startWaiting()
      const answer = await query.answer
      open.delete(query)
      unsubscribe?.()
      const wasRefused = onEnded(query) && 'fault' in answer
      if (wasRefused && !closed && signal?.aborted !== true) continue
      startWaiting()
      return answer
    }
  }
  return {
    resolve: resolve as Resolver['resolve'],
    close() {
      closed = true
      for (const query of open) query.cancel()
      udp.close()
    },
  }
}

/** Aliases to follow by queries; most resolvers follow all. */
const ALIASES_MAX = 4

/** The timeout of dig. A query that times out ends as `unknown`, so it needs no longer limit. */
const TIMEOUT_MS = 5 * SECOND
/** An answer of 64 KB can hold thousands of records; no legitimate name has that many. */
const RECORDS_MAX = 256

/**
 * Whether DNS can carry a name (lengths of RFC 1035 §2.3.4). Other bytes would be escaped or cut
 * off: for "\0.test" node:dns queries the root.
 */
const isDnsName = (name: string) =>
  name.length <= 253 && /^[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*$/.test(name)

/**
 * Creates the transport of a query: UDP, then TCP if the reply is truncated (RFC 7766 §5). Only
 * node:dns can query the system's resolver as it is configured.
 */
function createTransports(udp: UdpTransport, timeoutMs: number) {
  return (name: string, type: RecordType): DnsTransport =>
    (server, onReply) => {
      if (server === AS_CONFIGURED) return queryOverNodeDns(name, type, timeoutMs, onReply)
      let cancelCurrent = udp.query(server, name, type, reply => {
        if (reply !== 'truncated') return onReply(limitRecords(reply))
        const retry = queryOverTcp(server, { name, type }, systemRandom)
        cancelCurrent = () => retry.cancel()
        void retry.reply.then(tcpReply => onReply(limitRecords(tcpReply)))
      })
      return () => cancelCurrent()
    }
}

const limitRecords = (reply: DnsReply): DnsReply =>
  'records' in reply && reply.records.length > RECORDS_MAX
    ? { ...reply, records: reply.records.slice(0, RECORDS_MAX) }
    : reply

/**
 * Queries through node:dns, which reports response codes unknown to it (6 to 11) as an empty
 * answer. Each query has its own Resolver, because `cancel` ends all queries of a Resolver.
 */
function queryOverNodeDns(
  name: string,
  type: RecordType,
  timeoutMs: number,
  onReply: (reply: DnsReply) => void,
): () => void {
  // Node 20 ignores `maxTimeout`; there only the deadline of the caller ends a slow query.
  const options = { timeout: timeoutMs, maxTimeout: timeoutMs, tries: 1 }
  const resolver = new promises.Resolver(options)
  const run = async (): Promise<DnsReply> => {
    try {
      const records = await lookUp(resolver, name, type)
      // An empty answer is a CNAME whose target has no such record.
      return records.length === 0 ? { code: 'ENODATA' } : limitRecords({ records })
    } catch (error) {
      return { code: (error as NodeJS.ErrnoException).code ?? 'EBADRESP' }
    }
  }
  void run().then(onReply)
  return () => resolver.cancel()
}

async function lookUp(resolver: promises.Resolver, name: string, type: RecordType) {
  if (type === 'A') return resolver.resolve4(name)
  if (type === 'AAAA') return resolver.resolve6(name)
  if (type === 'TXT') return (await resolver.resolveTxt(name)).map(strings => strings.join(''))
  if (type === 'PTR') return resolver.resolvePtr(name)
  const records = await resolver.resolveMx(name)
  return records.map(({ priority, exchange }) => ({ preference: priority, host: exchange }))
}

/** Denotes the system's resolver as it is configured. */
const AS_CONFIGURED = ''

/** Returns the DNS servers of the system; an empty text if only the system can reach them. */
export function systemServers(): readonly string[] {
  const servers = new promises.Resolver().getServers()
  // setServers drops the zone of fe80::1%eth0, which home routers announce; node:dns alone can use
  // it.
  const linkLocal = servers.some(server => /^\[?fe[89ab]/i.test(server))
  return linkLocal || servers.length === 0 ? [AS_CONFIGURED] : servers
}

function validateServer(text: string): void {
  try {
    const port = Number(/^(?:\[.*\]|[\d.]+):(\d+)$/.exec(text)?.[1] ?? 53)
    // setServers treats port 0 as 53, accepts any number on Node 22, and drops a zone.
    if (port < 1 || port > 65_535 || text.includes('%'))
      throw new Error('port out of range, or a zone')
    new promises.Resolver().setServers([text])
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `"${text}" is not a valid DNS server. Use an IP address with an optional port, such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:5353.`,
      { cause },
    )
  }
}
