import { describe, expect, test } from 'vitest'
import { OPERATORS_SHOWN, operatorsStatus } from '../../../src/dashboard/health/create-health.ts'
import { CatchAllCache } from '../../../src/engine/probe/catch-all.ts'
import { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { EgressProber } from '../../../src/engine/probe/egress-prober.ts'
import type { RecipientOutcome } from '../../../src/engine/smtp/classify-reply.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestProber, ROW } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'
import { startNow } from '../../support/start-now.ts'

const REFUSAL: RecipientOutcome = {
  kind: 'blocked',
  why: 'blocklist',
  stage: 'greeting',
  reply: { code: 554, enhanced: '5.7.1', text: 'blocked' },
}

function createPool(...names: string[]) {
  const { world, clock } = createTestProber(knows())
  const catchAll = new CatchAllCache(clock)
  const probers = names.map(
    name => new EgressProber({ ...world, egress: { ...world.egress, name } }, () => ROW, catchAll),
  )
  const egressPool = new EgressPool(probers)
  const status = () =>
    operatorsStatus({ egressPool, smtpPort: 2_525, titleOf: name => name.toUpperCase() })
  return {
    clock,
    status,
    pace: (egress: string, operator: string) => egressPool.prober(egress).rateController(operator),
  }
}

describe('the operators shown', () => {
  test('are ordered by problems: skipped addresses, blocks, pauses; then by activity', () => {
    const { status, pace } = createPool('a')
    pace('a', 'idle')
    pace('a', 'idle too')
    pace('a', 'asked').onReply(true)
    startNow(pace('a', 'open'))
    pace('a', 'paused').throttled(null)
    pace('a', 'refusing').refused(REFUSAL)
    pace('a', 'much').refused(REFUSAL)
    pace('a', 'much').skipped(9)
    const { shown, left, egresses } = status()
    expect(shown.map(({ title }) => title)).toEqual([
      ...['MUCH', 'REFUSING', 'PAUSED', 'OPEN', 'ASKED', 'IDLE TOO', 'IDLE'],
    ])
    expect(left).toBe(0)
    expect(egresses).toEqual([{ name: 'a', closedSince: null, port: 2_525 }])
  })

  test('are limited; the others are counted', () => {
    const { status, pace } = createPool('a')
    for (let n = 0; n < OPERATORS_SHOWN + 7; n++) pace('a', `mail${n}.test`)
    pace('a', 'mail0.test').refused(REFUSAL)
    const { shown, left } = status()
    expect(shown).toHaveLength(OPERATORS_SHOWN)
    expect(shown[0]?.operator).toBe('mail0.test')
    expect(left).toBe(7)
  })

  test('are listed per egress, with whether other egresses take over', async () => {
    const { status, pace, clock } = createPool('a', 'b')
    const asked = () => status().shown.map(one => `${one.egress} ${one.othersAsk}`)
    pace('a', 'mx').refused(REFUSAL)
    expect(asked()).toEqual(['a true'])
    await clock.advance(MINUTE)
    pace('b', 'mx').refused(REFUSAL)
    expect(asked().toSorted()).toEqual(['a false', 'b false'])
  })
  test('that blocked the only egress have no other, even after the block has expired', async () => {
    const { status, pace, clock } = createPool('a')
    pace('a', 'mx').refused(REFUSAL)
    await clock.advance(31 * MINUTE)
    expect(status().shown).toMatchObject([{ operator: 'mx', othersAsk: false }])
  })
})
