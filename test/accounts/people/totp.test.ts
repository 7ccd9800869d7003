import { describe, expect, test } from 'vitest'
import { computeTotp, findTotpStep, totpUri } from '../../../src/accounts/people/totp.ts'
import { SECOND } from '../../../src/platform/clock.ts'

/** The secret of RFC 6238, appendix B, in Base32. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

/** The last six digits of the codes for SHA-1 there. */
const VECTORS: readonly [seconds: number, code: string][] = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
]

describe('a time-based code', () => {
  test.each(VECTORS)('at %i s is that of RFC 6238', (seconds, code) => {
    expect(computeTotp(SECRET, Math.floor(seconds / 30))).toBe(code)
    expect(findTotpStep(SECRET, code, seconds * SECOND)).toBe(Math.floor(seconds / 30))
  })

  test.each([
    ['of the step before', -30, true],
    ['of the step after', 30, true],
    ['two steps old', -60, false],
    ['two steps early', 60, false],
  ])('%s', (_, offsetS, isAccepted) => {
    const at = 1_234_567_890
    const code = computeTotp(SECRET, Math.floor((at + offsetS) / 30))
    expect(findTotpStep(SECRET, code, at * SECOND) !== null).toBe(isAccepted)
  })

  test.each(['', '00592', '0059244', '005925', 'abcdef', '００５９２４'])('%j is wrong', code => {
    expect(findTotpStep(SECRET, code, 1_234_567_890 * SECOND)).toBeNull()
  })

  test('may be typed with a space', () => {
    expect(findTotpStep(SECRET, '005 924', 1_234_567_890 * SECOND)).toBe(41_152_263)
  })
})

test('the URI names the service and the person', () => {
  expect(totpUri(SECRET, { issuer: 'ev.example.com', email: 'ann@shop.example' })).toBe(
    `otpauth://totp/ev.example.com:ann%40shop.example?secret=${SECRET}&issuer=ev.example.com`,
  )
})
