import { describe, expect, test } from 'vitest'
import {
  groupByMx,
  mxGroupKey,
  needsSmtpUtf8,
  nextBatch,
  type ProbeTarget,
} from '../../../src/engine/probe/mx-groups.ts'
import { ask } from '../../support/prober.ts'

const emails = (questions: readonly ProbeTarget[]) => questions.map(({ address }) => address.text)

describe('lanes', () => {
  test('are one for each set of exchangers, in the order they come', () => {
    const plans = groupByMx([
      ask('a@one.test', ['mx1.test', 'mx2.test']),
      ask('b@two.test', ['mx3.test']),
      ask('c@three.test', ['mx1.test', 'mx2.test']),
      ask('d@four.test', ['mx1.test']),
    ])
    expect(plans.map(({ key, questions }) => [key, emails(questions)])).toEqual([
      ['mx1.test mx2.test', ['a@one.test', 'c@three.test']],
      ['mx3.test', ['b@two.test']],
      ['mx1.test', ['d@four.test']],
    ])
  })

  test('hold their questions by domain, and in the order given within one', () => {
    const [plan] = groupByMx(
      ['z@b.test', 'x@a.test', 'a@b.test', 'b@a.test'].map(email => ask(email)),
    )
    expect(emails(plan?.targets ?? [])).toEqual(['x@a.test', 'b@a.test', 'z@b.test', 'a@b.test'])
  })

  test('of no question are none', () => {
    expect(groupByMx([])).toEqual([])
  })

  test('of a domain that is its own exchanger have its name', () => {
    expect(mxGroupKey({ kind: 'implicit', host: 'a.test' })).toBe('a.test')
  })
})

describe('a batch', () => {
  const names = (questions: readonly ProbeTarget[], sizeMax = 20) =>
    emails(nextBatch(questions, sizeMax))

  test('is of the domain of the first question', () => {
    expect(names([ask('a@a.test'), ask('b@a.test'), ask('c@b.test'), ask('d@a.test')])).toEqual([
      'a@a.test',
      'b@a.test',
    ])
  })

  test('has one domain in whatever form it was written', () => {
    expect(names([ask('a@bücher.test'), ask('b@xn--bcher-kva.test')])).toHaveLength(2)
  })

  test('is no longer than asked for', () => {
    expect(names([ask('a@a.test'), ask('b@a.test'), ask('c@a.test')], 2)).toEqual([
      'a@a.test',
      'b@a.test',
    ])
  })

  test('needs SMTPUTF8 for all or for none', () => {
    const mixed = [ask('a@a.test'), ask('ü@a.test'), ask('b@a.test')]
    expect(names(mixed)).toEqual(['a@a.test', 'b@a.test'])
    expect(names(mixed.slice(1))).toEqual(['ü@a.test'])
  })

  test('of nothing is empty', () => {
    expect(nextBatch([], 5)).toEqual([])
  })
})

test('SMTPUTF8 is for local parts alone', () => {
  expect(needsSmtpUtf8(ask('jörg@a.test'))).toBe(true)
  expect(needsSmtpUtf8(ask('ann@bücher.test'))).toBe(false)
  expect(needsSmtpUtf8(ask('"a b"@a.test'))).toBe(false)
})
