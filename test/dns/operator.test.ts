import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  isKnownOperator,
  operatorNamed,
  operatorNames,
  operatorOf,
} from '../../src/dns/operator.ts'
import { OPERATOR_ROWS } from '../../src/dns/operators.ts'

const FIXTURE = join(import.meta.dirname, '../../fixtures/operator/hosts.tsv')
const hosts = readFileSync(FIXTURE, 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map(line => line.split('\t') as [host: string, name: string, truth: string, note: string])

describe('operatorOf', () => {
  test.each(hosts)('%s is run by %s (%s) %s', (host, name, truth) => {
    expect(operatorOf(host)).toMatchObject({ name, truth })
  })

  test('a name that is not in the table is no known operator', () => {
    expect(isKnownOperator(operatorOf('mx1.company.test').name)).toBe(false)
    expect(isKnownOperator(operatorOf('aspmx.l.google.com').name)).toBe(true)
  })

  test('two hosts of one unknown domain have one operator', () => {
    expect(operatorOf('mx1.company.test').name).toBe(operatorOf('mx2.eu.company.test').name)
  })
})

describe('operatorNamed', () => {
  test('finds every operator of the table by its name', () => {
    expect(operatorNames().map(name => operatorNamed(name)?.name)).toEqual(operatorNames())
  })

  test('knows no other name', () => {
    expect(operatorNamed('company.test')).toBeNull()
    expect(operatorNamed('constructor')).toBeNull()
  })
})

describe('the table', () => {
  const suffixes = OPERATOR_ROWS.flatMap(([, , , list]) => list.split(' '))

  test('has at least 60 operators', () => {
    expect(OPERATOR_ROWS.length).toBeGreaterThanOrEqual(60)
  })

  test('gives each suffix to one operator', () => {
    expect(suffixes.filter((suffix, i) => suffixes.indexOf(suffix) !== i)).toEqual([])
  })

  test('has one row a name, and names in kebab case', () => {
    expect(operatorNames().length).toBe(OPERATOR_ROWS.length)
    expect(operatorNames().filter(name => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))).toEqual([])
  })

  test('has suffixes of two labels or more, in lower case', () => {
    expect(suffixes.filter(suffix => !/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(suffix))).toEqual([])
  })

  test('reaches every suffix', () => {
    for (const [name, , , list] of OPERATOR_ROWS) {
      for (const suffix of list.split(' ')) expect(operatorOf(`mx.${suffix}`).name).toBe(name)
    }
  })
})
