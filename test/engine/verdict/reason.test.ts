import { expect, test } from 'vitest'
import { REASON_TEXTS, REASONS, VERDICT_BY_REASON } from '../../../src/engine/verdict/reason.ts'

test('there are 31 reasons, in snake case', () => {
  expect(new Set(REASONS).size).toBe(31)
  for (const reason of REASONS) expect(reason).toMatch(/^[a-z]+(_[a-z0-9]+)*$/)
})

test.each(REASONS)('%s has a name, and a meaning and a recommendation, each a sentence', reason => {
  const { name, means, todo } = REASON_TEXTS[reason]
  expect(name).toMatch(/^[A-Z][^.\n]{3,24}$/)
  for (const sentence of [means, todo]) expect(sentence).toMatch(/^[A-Z][^\n]{3,}\.$/)
})

test.each(REASONS)('%s has a consistent verdict template', reason => {
  const { valid, deliverable, risk, confidence, details } = VERDICT_BY_REASON[reason]
  expect(confidence).toBeGreaterThanOrEqual(0)
  expect(confidence).toBeLessThanOrEqual(100)
  // Deliverable implies valid, and low risk implies deliverable.
  if (deliverable) expect(valid).toBe(true)
  if (risk === 'low') expect(deliverable).toBe(true)
  if (risk === 'unknown')
    expect({ valid, sure: confidence > 50 }).toEqual({ valid: false, sure: false })
  // Of an external result, no detail counts as tested.
  const isExternal = reason.startsWith('external_')
  if (deliverable) expect(details).toMatchObject({ smtpValid: !isExternal })
  // Each step requires the one before it.
  const { syntaxValid, domainExists, mxRecord, smtpValid } = details
  const steps = [syntaxValid, domainExists, mxRecord, smtpValid ?? false]
  expect(steps).toEqual(steps.toSorted((a, b) => Number(b) - Number(a)))
})

test('a verdict names a syntax error only for a text that is no address, and for none', () => {
  const faulty = REASONS.filter(reason => !VERDICT_BY_REASON[reason].details.syntaxValid)
  expect(faulty).toEqual(['invalid_email', 'no_address'])
})
