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
  test('that is not listed passes', async () => {
    expect(await lookUp()).toEqual([
      {
        state: 'ok',
        says: '192.0.2.9 is not listed by Spamhaus, SpamCop, Barracuda, PSBL, Mailspike',
        todo: null,
      },
    ])
  })

  test('that is listed fails with the reason and how to request removal', async () => {
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

  test.each(['127.0.0.10', '127.0.0.11'])('on the PBL (%s) has its own remedy', async code => {
    const [listed] = await lookUp({ [ZEN]: { A: [code] } })
    expect(listed).toMatchObject({ state: 'fail', todo: expect.stringMatching(/PTR.*--proxy/) })
    expect(listed?.says).toContain('PBL')
  })

  test('on a minor list is a warning', async () => {
    const [listed] = await lookUp({ '9.2.0.192.psbl.surriel.com': { A: ['127.0.0.2'] } })
    expect(listed).toMatchObject({ state: 'warn', todo: 'Remove it yourself at https://psbl.org.' })
  })

  test('of IPv6 is looked up by nibbles, on the lists that support it', async () => {
    const names = zone(TEST_POINTS)
    const found = await onBlocklists(names, '2001:db8::1', SIGNAL)
    expect(found.map(({ says }) => says)).toEqual(['2001:db8::1 is not listed by Spamhaus'])
    expect(names.asked).toContain(
      'A 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.zen.spamhaus.org',
    )
  })
})

describe('a list is unavailable', () => {
  test.each<[string, Record<string, ZoneEntry>]>([
    ['without its test entry', { '2.0.0.127.zen.spamhaus.org': 'no-name' }],
    [
      'that rejects a public resolver',
      {
        '2.0.0.127.zen.spamhaus.org': { A: ['127.255.255.254'] },
        [ZEN]: { A: ['127.255.255.254'] },
      },
    ],
    ['that lists every address', { '1.0.0.127.zen.spamhaus.org': { A: ['127.0.0.2'] } }],
    ['that does not answer', { [ZEN]: 'timeout' }],
    ['with an invented answer', { [ZEN]: { A: ['198.51.100.1'] } }],
  ])('%s', async (_, names) => {
    const [unavailable, clean] = await lookUp(names)
    expect(unavailable).toMatchObject({
      state: 'warn',
      says: 'no usable answer from Spamhaus: listing unknown',
      todo: expect.stringContaining('Run your own resolver'),
    })
    expect(clean?.says).not.toContain('Spamhaus')
  })
})
