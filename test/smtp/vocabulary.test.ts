import { describe, expect, test } from 'vitest'
import { classify } from '../../src/smtp/answer.ts'
import { type VocabularyCase, vocabulary } from './vocabulary.ts'

const meaningOf = ({ stage, reply }: VocabularyCase) => {
  const { kind, why } = classify(stage, reply)
  return `${kind}/${why}`
}
const accepted = ({ means, also }: VocabularyCase) => [means, ...also]
/** A full mailbox exists. */
const isDead = (meaning: string) => /^rejected\/(?!full)/.test(meaning)
const percent = (part: number, whole: number) => (100 * part) / whole

const SETS: readonly [name: string, cases: readonly VocabularyCase[]][] = [
  ['the cases that the rules were written with', vocabulary.filter(one => !one.isHeldOut)],
  ['the cases that were held out', vocabulary.filter(one => one.isHeldOut)],
]

describe.each(SETS)('the vocabulary of mail servers and operators: %s', (_, cases) => {
  test('no refusal of ours reads as a dead mailbox', () => {
    const falseDead = cases.filter(one => !accepted(one).some(isDead) && isDead(meaningOf(one)))
    expect(falseDead.map(({ reply }) => reply.text)).toEqual([])
  })

  test('no refusal reads as accepted', () => {
    const falseAccept = cases.filter(
      one => meaningOf(one).startsWith('accepted/') && !accepted(one).includes(meaningOf(one)),
    )
    expect(falseAccept.map(({ reply }) => reply.text)).toEqual([])
  })

  test('at least 96 % have a right meaning, and at most 2 % of the dead mailboxes are missed', () => {
    const right = cases.filter(one => accepted(one).includes(meaningOf(one)))
    expect(percent(right.length, cases.length)).toBeGreaterThanOrEqual(96)
    const dead = cases.filter(({ means }) => isDead(means))
    const missed = dead.filter(
      one => !isDead(meaningOf(one)) && !accepted(one).includes(meaningOf(one)),
    )
    expect(percent(missed.length, dead.length)).toBeLessThanOrEqual(2)
  })
})

test('the vocabulary has 600 cases or more, a third of them held out, and each names its source', () => {
  expect(vocabulary.length).toBeGreaterThanOrEqual(600)
  const heldOut = vocabulary.filter(({ isHeldOut }) => isHeldOut)
  expect(percent(heldOut.length, vocabulary.length)).toBeGreaterThan(30)
  expect(vocabulary.filter(({ source }) => source.length < 3)).toEqual([])
})

test('no case stands in the vocabulary twice', () => {
  const keys = vocabulary.map(({ stage, reply }) => JSON.stringify([stage, reply]))
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([])
})
