import { describe, expect, test } from 'vitest'
import { BLOCKLISTS, onBlocklists } from '../../../src/doctor/identity/blocklists.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const SIGNAL = new AbortController().signal
const TEST_POINTS = Object.fromEntries(
  BLOCKLISTS.map(list => [`2.0.0.127.${list.zone}`, { A: ['127.0.0.2'] }]),
)
const ZEN = '9.2.0.192.zen.spamhaus.org'

const lookUp = (names: Readonly<Record<string, ZoneEntry>> = {}, ip = '192.0.2.9') =>
  onBlocklists(zone({ ...TEST_POINTS, ...names }), ip, SIGNAL)

describe('an address', () => {
  test('that no list has is well', async () => {
    expect(await lookUp()).toEqual([
      {
        state: 'ok',
        says: '192.0.2.9 is not listed by Spamhaus, SpamCop, Barracuda, PSBL, Mailspike',
        todo: null,
      },
    ])
  })

  test('on a list fails with what the list says of it and how to get off it', async () => {
    const [listed, clean] = await lookUp({
      [ZEN]: { A: ['127.0.0.4'], TXT: ['https://check.spamhaus.org/query/ip/192.0.2.9\u001b[2J'] },
    })
    expect(listed).toMatchObject({
      state: 'fail',
      says: '192.0.2.9 is listed by Spamhaus (127.0.0.4): XBL: a machine behind it appears to be infected or compromised; "https://check.spamhaus.org/query/ip/192.0.2.9\uFFFD[2J"',
      todo: expect.stringContaining('Find and clean the machine'),
    })
    expect(clean?.says).toBe('192.0.2.9 is not listed by SpamCop, Barracuda, PSBL, Mailspike')
  })

  test.each(['127.0.0.10', '127.0.0.11'])('of the PBL (%s) has a remedy of its own', async code => {
    const [listed] = await lookUp({ [ZEN]: { A: [code] } })
    expect(listed).toMatchObject({ state: 'fail', todo: expect.stringMatching(/PTR.*--proxy/) })
    expect(listed?.says).toContain('PBL')
  })

  test('on a list of small weight is a warning', async () => {
    const [listed] = await lookUp({ '9.2.0.192.psbl.surriel.com': { A: ['127.0.0.2'] } })
    expect(listed).toMatchObject({ state: 'warn', todo: 'Remove it yourself at https://psbl.org.' })
  })

  test('of IPv6 is asked by its nibbles, of the lists that have such', async () => {
    const names = zone(TEST_POINTS)
    const found = await onBlocklists(names, '2001:db8::1', SIGNAL)
    expect(found.map(({ says }) => says)).toEqual(['2001:db8::1 is not listed by Spamhaus'])
    expect(names.asked).toContain(
      'A 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.zen.spamhaus.org',
    )
  })
})

describe('a list is not taken for clean', () => {
  test.each<[string, Record<string, ZoneEntry>]>([
    ['that does not have its test entry', { '2.0.0.127.zen.spamhaus.org': 'no-name' }],
    [
      'that tells a public resolver off',
      {
        '2.0.0.127.zen.spamhaus.org': { A: ['127.255.255.254'] },
        [ZEN]: { A: ['127.255.255.254'] },
      },
    ],
    ['that lists the whole world', { '1.0.0.127.zen.spamhaus.org': { A: ['127.0.0.2'] } }],
    ['whose answer for us did not come', { [ZEN]: 'timeout' }],
    ['for which a resolver invents an answer', { [ZEN]: { A: ['198.51.100.1'] } }],
  ])('%s', async (_, names) => {
    const [deaf, clean] = await lookUp(names)
    expect(deaf).toMatchObject({
      state: 'warn',
      says: 'no usable answer from Spamhaus: listing unknown',
      todo: expect.stringContaining('Run your own resolver'),
    })
    expect(clean?.says).not.toContain('Spamhaus')
  })
})
