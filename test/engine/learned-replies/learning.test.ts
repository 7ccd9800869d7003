import { describe, expect, test } from 'vitest'
import { createTestEngine, toRecipients } from '../../support/engine.ts'

/** Texts that no rule knows; `{to}` is the recipient. */
const TEXTS = [
  ['Finnish', '550 5.7.1 <{to}> ei asu meillä'],
  ['Hungarian', '550 {to}: ilyen nevű postafiókot nem vezetünk'],
  ['Greek', '554 5.0.0 Η θυρίδα {to} δεν βρέθηκε ποτέ εδώ'],
  ['Thai', '550 ไม่มีกล่องจดหมายชื่อนี้'],
  ['Swahili', '550 5.4.1 Barua haiwezi kufika kwa {to} [a81f93b2c7]'],
] as const

/** Accepts these local parts, and says the text to all others. */
const says = (text: string, ...known: readonly string[]) =>
  toRecipients(to => {
    if (known.includes(to.split('@')[0] as string)) return '250 2.1.5 Ok'
    return text.replaceAll('{to}', to)
  })

describe.each(TEXTS)('in %s', (_, text) => {
  test('a single verification of a mailbox teaches the words for missing ones', async () => {
    const home = createTestEngine({ script: says(text, 'ann', 'bob') })
    expect(await home.reason('noone@a.test')).toBe('probe_blocked')
    expect(await home.reason('ann@a.test')).toBe('accepted_email')
    expect(home.mx.dialled).toHaveLength(3)
    expect(await home.reason('noone@a.test')).toBe('rejected_email')
    expect(await home.reason('bob@a.test')).toBe('accepted_email')
    expect(home.mx.dialled).toHaveLength(5)
  })

  test('a list teaches itself without another connection', async () => {
    const home = createTestEngine({ script: says(text, 'ann', 'bob') })
    const started = home.clock.monotonicNow()
    const results = await home.many([
      'x1@a.test',
      'ann@a.test',
      'x2@a.test',
      'bob@a.test',
      'x3@a.test',
    ])
    console.log(
      results.map(r => `${r.email} ${r.verdict.reason} ${r.verdict.confidence}`),
      home.clock.monotonicNow() - started,
      home.mx.lines(),
    )
    expect(home.mx.dialled).toHaveLength(1)
  })
})
