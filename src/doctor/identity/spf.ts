import type { DNSResolver } from 'mailauth'
import type {
  DnsAnswer,
  DnsFault,
  MxRecord,
  RecordType,
  Resolver,
} from '../../engine/dns/resolver.ts'

/** What SPF says of a sender (RFC 7208 §2.6). */
export type SpfResult = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'
  /** The record of the domain itself; null where there is none. */
  readonly record: string | null
  /** What is wrong, for the two errors. */
  readonly fault: string | null
}

export type SpfQuestion = { readonly ip: string; readonly sender: string; readonly helo: string }

/** Whether the sender's domain lets this address send (check_host of RFC 7208 §4). */
export async function checkSpf(
  resolver: Resolver,
  question: SpfQuestion,
  signal: AbortSignal,
): Promise<SpfResult> {
  // Loaded where it is needed: it brings a parser of messages with it.
  const { spf } = await import('mailauth/lib/spf/index.js')
  const { status, rr } = await spf({
    ...question,
    mta: question.helo,
    strict: true,
    resolver: ((name, type) => ask(resolver, name, type, signal)) as DNSResolver,
  })
  const isError = status.result === 'temperror' || status.result === 'permerror'
  return {
    result: status.result as SpfResult['result'],
    record: rr ?? null,
    fault: isError ? faultIn(status.comment || '') : null,
  }
}

/** Our resolver in the manner of node:dns, which the library expects. */
async function ask(resolver: Resolver, name: string, type: string, signal: AbortSignal) {
  const answer = await resolver.resolve(name, type as RecordType, signal)
  if ('fault' in answer)
    throw Object.assign(new Error(`${name}: ${SAID[answer.fault]}`), { code: CODES[answer.fault] })
  return inItsManner(type, answer)
}

function inItsManner(
  type: string,
  { records }: Extract<DnsAnswer<RecordType>, { records: unknown }>,
) {
  if (type === 'TXT') return records.map(text => [text])
  if (type !== 'MX') return [...records]
  return (records as readonly MxRecord[]).map(({ preference, host }) => ({
    priority: preference,
    exchange: host,
  }))
}

const CODES: Readonly<Record<DnsFault, string>> = {
  'no-name': 'ENOTFOUND',
  'no-data': 'ENODATA',
  server: 'ESERVFAIL',
  timeout: 'ETIMEOUT',
}
const SAID: Readonly<Record<DnsFault, string>> = {
  'no-name': 'there is no such name',
  'no-data': 'there is no such record',
  server: 'its DNS servers failed',
  timeout: 'the DNS did not answer',
}

/** The library says it as a header of a message would: "probe.test: permanent error in … of a@b: what is wrong". */
const faultIn = (comment: string) => comment.replace(/^.*? during lookup of [^:]*: /, '')
