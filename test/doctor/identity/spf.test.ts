import { describe, expect, test } from 'vitest'
import { checkSpf } from '../../../src/doctor/identity/spf.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const SIGNAL = new AbortController().signal
const ASKED = { ip: '192.0.2.3', sender: 'strong-bad@a.test', helo: 'probe.test' }

async function spf(
  record: string | readonly string[],
  names: Readonly<Record<string, ZoneEntry>> = {},
  asked: Partial<typeof ASKED> = {},
) {
  const records = typeof record === 'string' ? [record] : record
  const resolver = zone({
    'a.test': { TXT: records, A: ['192.0.2.3'], MX: [[10, 'mx.a.test']] },
    'mx.a.test': { A: ['192.0.2.40'], AAAA: ['2001:db8::40'] },
    ...names,
  })
  const found = await checkSpf(resolver, { ...ASKED, ...asked }, SIGNAL)
  return { ...found, asked: resolver.asked }
}

describe('SPF', () => {
  // Record and its result for 192.0.2.3.
  test.each([
    ['v=spf1 -all', 'fail'],
    ['v=spf1 ~all', 'softfail'],
    ['v=spf1 ?all', 'neutral'],
    ['V=SPF1 ALL', 'pass'],
    ['v=spf1', 'neutral'],
    ['v=spf1 ip4:192.0.2.3 -all', 'pass'],
    ['v=spf1 ip4:192.0.2.0/30 -all', 'pass'],
    ['v=spf1 ip4:192.0.2.4/30 -all', 'fail'],
    ['v=spf1 ip6:2001:db8::/32 -all', 'fail'],
    ['v=spf1 a -all', 'pass'],
    ['v=spf1 a:mx.a.test -all', 'fail'],
    ['v=spf1 a:mx.a.test/24 -all', 'pass'],
    ['v=spf1 mx -all', 'fail'],
    ['v=spf1 mx/26 -all', 'pass'],
    ['v=spf1 -a +all', 'fail'],
    ['v=spf1 foo=bar unknown=%{d} ip4:192.0.2.3 -all', 'pass'],
    ['v=spf1 ip4:192.0.2.300 -all', 'permerror'],
    ['v=spf1 ip4:192.0.2.3/33 -all', 'permerror'],
    ['v=spf1 ip4:2001:db8::1 -all', 'permerror'],
    ['v=spf1 ip4:192.0.2.3 -al', 'permerror'], // An error anywhere invalidates the record, §4.6.
    ['v=spf1 include -all', 'permerror'],
    ['v=spf1 a:192.0.2.3 -all', 'permerror'],
    ['v=spf1 redirect=a.test redirect=a.test', 'permerror'],
    ['v=spf1 exists:%{q}.a.test -all', 'permerror'],
    ['v=spf1 ip6:::ffff:192.0.2.3 -all', 'fail'], // A network of IPv6, not of IPv4.
    ['v=spf1 ip4:192.0.2.3/032 -all', 'permerror'],
    ['v=spf1 a:a.test/24//64 -all', 'pass'],
    ['v=spf1 a:a.test//129 -all', 'permerror'],
    ['v=spf1 a:a.123 -all', 'permerror'],
    ['v=spf1 all: -all', 'permerror'],
    ['v=spf1 ptr: -all', 'permerror'],
    ['v=spf1 a:%{o0} -all', 'permerror'],
    ['v=spf1 exp=%{d} exp=%{d} -all', 'permerror'],
    [`v=spf1 a:${'a'.repeat(64)}.test -all`, 'fail'], // Too long a label matches nothing, §4.8.
    ['v=spf10 -all', 'none'],
    ['spf2.0/mfrom +all', 'none'],
  ])('%s: %s', async (record, result) => {
    expect((await spf(record)).result).toBe(result)
  })

  test('of an IPv6 address uses AAAA records', async () => {
    const asked = { ip: '2001:db8::41' }
    expect((await spf('v=spf1 mx//120 -all', {}, asked)).result).toBe('pass')
    expect((await spf('v=spf1 mx -all', {}, asked)).result).toBe('fail')
    expect((await spf('v=spf1 ip6:2001:db8::/64 -all', {}, asked)).result).toBe('pass')
  })

  test('continues after an include that does not pass, and ends with one that does', async () => {
    const names = {
      'yes.test': { TXT: ['v=spf1 ip4:192.0.2.3 -all'] },
      'no.test': { TXT: ['v=spf1 -all'] },
      'perhaps.test': { TXT: ['v=spf1 ?all'] },
    }
    expect((await spf('v=spf1 include:no.test ~all', names)).result).toBe('softfail')
    expect((await spf('v=spf1 include:perhaps.test -all', names)).result).toBe('fail')
    expect((await spf('v=spf1 ?include:yes.test -all', names)).result).toBe('neutral')
    expect((await spf('v=spf1 include:gone.test -all', names)).result).toBe('permerror')
    expect((await spf('v=spf1 redirect=no.test', names)).result).toBe('fail')
    expect((await spf('v=spf1 redirect=gone.test', names)).result).toBe('permerror')
    expect((await spf('v=spf1 ~all redirect=no.test', names)).result).toBe('softfail')
  })

  test('expands macros as RFC 7208 §7.4 shows', async () => {
    const { asked } = await spf(
      'v=spf1 exists:%{ir}.%{v}._spf.%{d1} exists:%{lr-}.lp.%{o}._spf.%{h} -all',
      { 'bad.strong.lp.a.test._spf.probe.test': { A: ['127.0.0.2'] } },
    )
    expect(asked.slice(1)).toEqual([
      'A 3.2.0.192.in-addr._spf.test',
      'A bad.strong.lp.a.test._spf.probe.test',
    ])
  })

  test('escapes the values of macros in upper case, and removes labels of a long name', async () => {
    const local = `a/b.${'c'.repeat(60)}`
    const record = `v=spf1 exists:%{L}.%%.test exists:%{l}.${'%{l}.'.repeat(3)}a.test -all`
    const { asked } = await spf(record, {}, { sender: `${local}@a.test` })
    expect(asked[1]).toBe(`A ${local.replace('/', '%2f')}.%.test`)
    expect(asked[2]).toBe(`A ${`${local}.`.repeat(3)}a.test`)
  })

  test('expands the macro p to a confirmed name of the client', async () => {
    const names = {
      '3.2.0.192.in-addr.arpa': { PTR: ['other.test', 'out.a.test'] },
      'other.test': { A: ['192.0.2.3'] },
      'out.a.test': { A: ['192.0.2.3'] },
    }
    const { asked } = await spf('v=spf1 exists:%{p}.list.test -all', names)
    expect(asked.at(-1)).toBe('A out.a.test.list.test')
    const without = await spf('v=spf1 exists:%{p}.list.test -all')
    expect(without.asked.at(-1)).toBe('A unknown.list.test')
  })

  test('rejects a name with more than ten MX records', async () => {
    const MX = Array.from({ length: 11 }, (_, i) => [10, `mx${i}.b.test`] as const)
    expect((await spf('v=spf1 mx:b.test -all', { 'b.test': { MX } })).result).toBe('permerror')
  })

  test('validates the ptr mechanism by forward lookup', async () => {
    const names = {
      '3.2.0.192.in-addr.arpa': { PTR: ['evil.test', 'Probe.A.test'] },
      'probe.a.test': { A: ['192.0.2.3'] },
    }
    expect((await spf('v=spf1 ptr -all', names)).result).toBe('pass')
    expect((await spf('v=spf1 ptr:evil.test -all', names)).result).toBe('fail')
  })

  test('allows ten lookups over all records, not eleven', async () => {
    const chain = (length: number) =>
      Object.fromEntries(
        Array.from({ length }, (_, i) => [
          `s${i}.test`,
          { TXT: [i === length - 1 ? 'v=spf1 +all' : `v=spf1 include:s${i + 1}.test -all`] },
        ]),
      )
    expect((await spf('v=spf1 include:s0.test -all', chain(10))).result).toBe('pass')
    expect(await spf('v=spf1 include:s0.test -all', chain(11))).toMatchObject({
      result: 'permerror',
      fault: 'more than 10 DNS lookups',
    })
  })

  test('of a record that includes itself ends', async () => {
    expect((await spf('v=spf1 include:a.test -all')).result).toBe('permerror')
  })

  test('allows two void lookups, not three', async () => {
    expect((await spf('v=spf1 a:b.test a:c.test -all')).result).toBe('fail')
    expect((await spf('v=spf1 a:b.test a:c.test a:d.test -all')).result).toBe('permerror')
  })

  test('reports DNS failures as temporary errors, and two records as an error', async () => {
    expect((await spf('v=spf1 a:slow.test -all', { 'slow.test': 'timeout' })).result).toBe(
      'temperror',
    )
    expect((await spf([], { 'a.test': 'server' })).result).toBe('temperror')
    expect((await spf(['v=spf1 -all', 'v=spf1 +all'])).result).toBe('permerror')
    expect(await spf([])).toMatchObject({ result: 'none', record: null })
  })
})
