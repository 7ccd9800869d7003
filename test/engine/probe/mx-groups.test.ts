import { describe, expect, test } from 'vitest'
import {
  groupByMx,
  mxGroupKey,
  needsSmtpUtf8,
  nextBatch,
  type ProbeTarget,
} from '../../../src/engine/probe/mx-groups.ts'
import { ask, OPERATOR } from '../../support/prober.ts'

const emails = (targets: readonly ProbeTarget[]) => targets.map(({ address }) => address.text)

describe('MX groups', () => {
  test('are one per set of MX hosts, in order of appearance', () => {
    const plans = groupByMx(
      [
        ask('a@one.test', ['mx1.test', 'mx2.test']),
        ask('b@two.test', ['mx3.test']),
        ask('c@three.test', ['mx1.test', 'mx2.test']),
        ask('d@four.test', ['mx1.test']),
      ],
      OPERATOR.name,
    )
    expect(plans.map(({ key, targets }) => [key, emails(targets)])).toEqual([
      ['mx1.test mx2.test', ['a@one.test', 'c@three.test']],
      ['mx3.test', ['b@two.test']],
      ['mx1.test', ['d@four.test']],
    ])
  })

  test('sort targets by domain and keep the given order within one', () => {
    const [plan] = groupByMx(
      ['z@b.test', 'x@a.test', 'a@b.test', 'b@a.test'].map(email => ask(email)),
      OPERATOR.name,
    )
    expect(emails(plan?.targets ?? [])).toEqual(['x@a.test', 'b@a.test', 'z@b.test', 'a@b.test'])
  })

  test('are empty without targets', () => {
    expect(groupByMx([], OPERATOR.name)).toEqual([])
  })

  test('use the domain as key for an implicit MX', () => {
    expect(mxGroupKey({ kind: 'implicit', host: 'a.test' })).toBe('a.test')
  })
})

describe('a batch', () => {
  const names = (targets: readonly ProbeTarget[], sizeMax = 20) =>
    emails(nextBatch(targets, sizeMax))

  test('contains only the domain of the first target', () => {
    expect(names([ask('a@a.test'), ask('b@a.test'), ask('c@b.test'), ask('d@a.test')])).toEqual([
      'a@a.test',
      'b@a.test',
    ])
  })

  test('treats Unicode and ASCII forms as one domain', () => {
    expect(names([ask('a@bücher.test'), ask('b@xn--bcher-kva.test')])).toHaveLength(2)
  })

  test('has at most the given size', () => {
    expect(names([ask('a@a.test'), ask('b@a.test'), ask('c@a.test')], 2)).toEqual([
      'a@a.test',
      'b@a.test',
    ])
  })

  test('does not mix targets with and without SMTPUTF8', () => {
    const mixed = [ask('a@a.test'), ask('ü@a.test'), ask('b@a.test')]
    expect(names(mixed)).toEqual(['a@a.test', 'b@a.test'])
    expect(names(mixed.slice(1))).toEqual(['ü@a.test'])
  })

  test('is empty without targets', () => {
    expect(nextBatch([], 5)).toEqual([])
  })
})

test('SMTPUTF8 depends on the local part only', () => {
  expect(needsSmtpUtf8(ask('jörg@a.test'))).toBe(true)
  expect(needsSmtpUtf8(ask('ann@bücher.test'))).toBe(false)
  expect(needsSmtpUtf8(ask('"a b"@a.test'))).toBe(false)
})
