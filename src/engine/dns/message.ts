import dnsPacket, {
  type Answer,
  type DecodedPacket,
  type Packet as QueryPacket,
  type StringAnswer,
} from 'dns-packet'
import { SECOND } from '../../platform/clock.ts'
import type { DnsReply } from './query.ts'
import { type HostAddresses, plainName, type RecordOf, type RecordType } from './resolver.ts'

/** The reply of a server; `truncated` if it does not fit into a UDP packet. */
export type DnsMessageReply = DnsReply | 'truncated'

export type DnsQuestion = { readonly name: string; readonly type: RecordType }

/** Builds a recursive query for one question. */
export const createQuery = (id: number, { name, type }: DnsQuestion): QueryPacket => ({
  type: 'query',
  id,
  flags: dnsPacket.RECURSION_DESIRED,
  questions: [{ type, name }],
})

/** Returns the ID of a response; null for other packets. A packet without the QR bit is a query. */
export const readResponseId = (bytes: Buffer): number | null =>
  bytes.length >= HEADER_BYTES && ((bytes[2] ?? 0) & 0x80) !== 0 ? bytes.readUInt16BE(0) : null

/** Length of the message header (RFC 1035 §4.1.1). */
const HEADER_BYTES = 12

/** Decodes a response with the ID of a query; `ignored` if it answers another question. */
export function readReply(bytes: Buffer, { name, type }: DnsQuestion): DnsMessageReply | 'ignored' {
  const packet = decode(bytes)
  if (packet === null || packet.opcode !== 'QUERY') return { code: 'EBADRESP' }
  const { rcode, questions = [] } = packet
  const isAnswered = rcode === 'NOERROR' || rcode === 'NXDOMAIN'
  // A server that could not parse the query may omit the question (RFC 1035 §4.1.1).
  if (isAnswered || questions.length > 0) {
    const [question] = questions
    if (questions.length !== 1 || question === undefined) return 'ignored'
    if (question.type !== type || question.class !== 'IN') return 'ignored'
    if (!isSameName(question.name, name)) return 'ignored'
  }
  if (rcode === 'NXDOMAIN') return { code: 'ENOTFOUND', ...readNegativeTtl(packet) }
  if (rcode !== 'NOERROR') return { code: FAULT_CODES[rcode] ?? 'EBADRESP' }
  return packet.flag_tc ? 'truncated' : readAnswer(packet, name, type)
}

const FAULT_CODES: Readonly<Record<string, string>> = {
  FORMERR: 'EFORMERR',
  SERVFAIL: 'ESERVFAIL',
  NOTIMP: 'ENOTIMP',
  REFUSED: 'EREFUSED',
}

type Packet = DecodedPacket & { readonly rcode: string; readonly opcode: string }

/** Decodes a message; null if it is malformed. */
function decode(bytes: Buffer): Packet | null {
  // After a record that ends beyond the message dns-packet continues at its first byte.
  if (!isWhole(bytes)) return null
  try {
    return dnsPacket.decode(bytes) as Packet
  } catch {
    return null
  }
}

/** Whether a message has all the questions and records that its header counts (RFC 1035 §4.1). */
function isWhole(bytes: Buffer): boolean {
  if (bytes.length < HEADER_BYTES) return false
  const questions = bytes.readUInt16BE(4)
  const records = bytes.readUInt16BE(6) + bytes.readUInt16BE(8) + bytes.readUInt16BE(10)
  let at = HEADER_BYTES
  for (let n = 0; n < questions + records; n++) {
    at = skipName(bytes, at) + (n < questions ? QUESTION_FIELDS_BYTES : RECORD_FIELDS_BYTES)
    if (at > bytes.length) return false
    if (n >= questions) at += bytes.readUInt16BE(at - 2)
  }
  return at <= bytes.length
}

/** Length of the fields after the name of a question, and of a record before its data. */
const QUESTION_FIELDS_BYTES = 4
const RECORD_FIELDS_BYTES = 10

/** Returns where a name ends: after an empty label, or after a pointer (RFC 1035 §4.1.4). */
function skipName(bytes: Buffer, start: number): number {
  for (let at = start; at < bytes.length; ) {
    const length = bytes[at] ?? 0
    if (length >= 0xc0) return at + 2
    at += 1 + length
    if (length === 0) return at
  }
  return bytes.length
}

function readAnswer(packet: Packet, name: string, type: RecordType): DnsMessageReply {
  const { answers = [], authorities = [] } = packet
  const aliases = followAliases(answers, name)
  if (aliases === null) return { code: 'EBADRESP' }
  const owner = aliases.at(-1)?.data ?? name
  const found = answers.filter(answer => answer.type === type && isSameName(answer.name, owner))
  const records = found.map(answer => toRecord(answer, type)).filter(record => record !== null)
  if (records.length > 0) {
    return {
      records,
      ttlMs: findLeastTtlMs([...aliases, ...found]),
      ...readAdditional(packet, records),
    }
  }
  // Records of another name do not answer the question.
  if (answers.length > 0 && aliases.length === 0) return { code: 'EBADRESP' }
  // RFC 2308 §2.2: NS records without a SOA refer to other servers and say nothing about the type.
  const hasSoa = authorities.some(record => record.type === 'SOA')
  const isReferral = !hasSoa && authorities.some(record => record.type === 'NS')
  if (isReferral) return { code: 'EBADRESP' }
  const alias = hasSoa ? undefined : aliases.at(-1)?.data
  return { code: 'ENODATA', ...readNegativeTtl(packet), ...(alias === undefined ? {} : { alias }) }
}

/**
 * Returns the TTL of an answer without records: the lower of the TTL and the MINIMUM field of the
 * SOA record (RFC 2308 §5); empty without a SOA record.
 */
function readNegativeTtl({ authorities = [] }: Packet): { readonly ttlMs?: number } {
  const soa = authorities.find(record => record.type === 'SOA')
  if (soa?.type !== 'SOA') return {}
  return { ttlMs: Math.min(findLeastTtlMs([soa]), (soa.data.minimum ?? 0) * SECOND) }
}

/** The records of an answer, aliases included, expire together (RFC 2181 §5.2). */
const findLeastTtlMs = (records: readonly Answer[]): number =>
  Math.min(...records.map(record => readTtl(record) * SECOND))

/** A TTL with the most significant bit set is zero (RFC 2181 §8). */
const readTtl = (record: Answer): number => {
  const ttl = ('ttl' in record ? record.ttl : undefined) ?? 0
  return ttl > TTL_MAX_S ? 0 : ttl
}

const TTL_MAX_S = 0x7fff_ffff

/**
 * Returns the addresses that a resolver sends along with MX records (RFC 1035 §3.3.9). They are as
 * reliable as the answer to a direct query: they come in the same checked packet, and a resolver
 * fills the section from the data it would answer with. Hosts that the MX records do not name are
 * skipped.
 */
function readAdditional(
  { additionals = [] }: Packet,
  records: readonly RecordOf<RecordType>[],
): { readonly additional?: readonly HostAddresses[] } {
  const found: HostAddresses[] = []
  for (const record of records) {
    if (typeof record === 'string') continue
    for (const type of ['A', 'AAAA'] as const) {
      const own = additionals.filter(
        (one): one is StringAnswer =>
          one.type === type && one.class === 'IN' && isSameName(one.name, record.host),
      )
      if (own.length === 0) continue
      const addresses = own.map(one => one.data)
      found.push({ host: plainName(record.host), type, addresses, ttlMs: findLeastTtlMs(own) })
    }
  }
  return found.length === 0 ? {} : { additional: found }
}

/**
 * Returns the CNAME records that lead from `name` to the name with the records (RFC 1034 §3.6.2);
 * null for a loop or a chain that is too long, which says nothing about the name at its end.
 */
function followAliases(answers: readonly Answer[], name: string): readonly StringAnswer[] | null {
  const aliases: StringAnswer[] = []
  for (;;) {
    const owner = aliases.at(-1)?.data ?? name
    const alias = answers.find(answer => answer.type === 'CNAME' && isSameName(answer.name, owner))
    if (alias?.type !== 'CNAME') return aliases
    if (aliases.length === ALIASES_MAX) return null
    aliases.push(alias)
  }
}

/** The limit of common resolvers. */
const ALIASES_MAX = 16

function toRecord(answer: Answer, type: RecordType): RecordOf<RecordType> | null {
  if (answer.type === 'MX' && type === 'MX') {
    const { preference = 0, exchange } = answer.data
    return { preference, host: printable(exchange) }
  }
  if (answer.type === 'TXT') return textOf(answer.data)
  if (answer.type === 'PTR') return printable(answer.data)
  return answer.type === 'A' || answer.type === 'AAAA' ? answer.data : null
}

const textOf = (data: string | Buffer | readonly (string | Buffer)[]): string =>
  [data]
    .flat()
    .map(part => part.toString())
    .join('')

/** Replaces octets outside printable ASCII by `?`, and the root by an empty name. */
const printable = (name: string) => (name === '.' ? '' : name.replace(/[^\x21-\x7e]/g, '?'))

const isSameName = (one: string, other: string) =>
  one === other || plainName(one) === plainName(other)

/** Splits `HOST[:PORT]`; the default port is 53. */
export function parseServer(server: string): { host: string; port: number } {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([\d.]+))(?::(\d+))?$/.exec(server) ?? []
  return { host: bracketed ?? plain ?? server, port: port === undefined ? DNS_PORT : Number(port) }
}

const DNS_PORT = 53
