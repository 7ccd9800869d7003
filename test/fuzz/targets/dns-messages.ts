import { match, ok } from 'node:assert/strict'
import { isIP } from 'node:net'
import dnsPacket, { type Answer } from 'dns-packet'
import { readReply, readResponseId } from '../../../src/engine/dns/message.ts'
import type { RecordType } from '../../../src/engine/dns/resolver.ts'
import type { FuzzTarget } from '../target.ts'

const NAME = 'mail.example'
const TYPES: readonly RecordType[] = ['MX', 'A', 'AAAA', 'TXT', 'PTR']

/** A message of any bytes gives records in their form, or a code; it never throws. */
export const target: FuzzTarget = {
  fuzz(bytes) {
    const id = readResponseId(bytes)
    ok(id === null || (id >= 0 && id <= 0xffff))
    for (const type of TYPES) checkReply(bytes, type)
  },
  *seeds() {
    const mx = { type: 'MX', name: NAME, data: { preference: 10, exchange: 'mx.mail.example' } }
    const address = { type: 'A', name: 'mx.mail.example', data: '192.0.2.1' }
    const alias = { type: 'CNAME', name: NAME, data: 'other.example' }
    const soa = { mname: 'ns.example', rname: 'root.example', minimum: 60 }
    yield encode('MX', { answers: [mx], additionals: [address] })
    yield encode('MX', { flags: 3, authorities: [{ type: 'SOA', name: 'example', data: soa }] })
    yield encode('A', { answers: [alias, { ...address, name: 'other.example' }] })
    yield encode('AAAA', { answers: [{ type: 'AAAA', name: NAME, data: '2001:db8::1' }] })
    yield encode('TXT', { answers: [{ type: 'TXT', name: NAME, data: ['v=spf1', ' -all'] }] })
    yield encode('PTR', { answers: [{ type: 'PTR', name: NAME, data: 'mx.mail.example' }] })
  },
  lengthMax: 1_024,
}

type Sections = {
  readonly flags?: number
  readonly answers?: readonly object[]
  readonly authorities?: readonly object[]
  readonly additionals?: readonly object[]
}

const encode = (type: RecordType, { flags = 0, ...sections }: Sections) =>
  dnsPacket.encode({
    type: 'response',
    id: 1,
    flags,
    questions: [{ type, name: NAME }],
    answers: (sections.answers ?? []) as Answer[],
    authorities: (sections.authorities ?? []) as Answer[],
    additionals: (sections.additionals ?? []) as Answer[],
  })

function checkReply(bytes: Buffer, type: RecordType): void {
  const reply = readReply(bytes, { name: NAME, type })
  if (reply === 'ignored' || reply === 'truncated') return
  const { ttlMs = 0 } = reply
  ok(Number.isInteger(ttlMs) && ttlMs >= 0)
  if ('code' in reply) {
    match(reply.code, /^E[A-Z]+$/)
    return
  }
  ok(reply.records.length > 0)
  for (const record of reply.records) {
    if (typeof record !== 'string') {
      ok(record.preference >= 0 && record.preference <= 0xffff)
      match(record.host, /^[!-~]*$/)
    } else if (type === 'PTR') match(record, /^[!-~]*$/)
    else if (type !== 'TXT') ok(isIP(record) === (type === 'A' ? 4 : 6))
  }
  for (const { host, addresses } of reply.additional ?? []) {
    match(host, /^[!-~]*$/)
    ok(addresses.every(address => isIP(address) > 0))
  }
}
