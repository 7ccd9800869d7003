import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  isListed,
  REAL_PROVIDERS,
  RELAYS,
  withParents,
} from '../../../src/engine/address/name-list.ts'
import { OPERATOR_ROWS } from '../../../src/engine/dns/operators.ts'

const LISTS = join(import.meta.dirname, '../../../src/engine/address/lists')
const namesOf = (file: string) => readFileSync(join(LISTS, file), 'utf8').split('\n').slice(0, -1)
const files = ['disposable.txt', 'free.txt', 'role.txt']

describe('the built-in lists', () => {
  test.each(files)('%s is sorted, without duplicates, in lower case, one name per line', file => {
    const names = namesOf(file)
    expect(names.length).toBeGreaterThan(900)
    expect(names).toEqual([...new Set(names)].sort((a, b) => (a < b ? -1 : 1)))
    expect(names.filter(name => !/^[a-z0-9._-]+$/.test(name))).toEqual([])
  })

  test('no real provider is disposable', () => {
    const real = new Set([...REAL_PROVIDERS, ...RELAYS])
    expect(namesOf('disposable.txt').filter(name => real.has(name))).toEqual([])
  })

  test('no domain of a mail operator or a well-known sender is disposable', () => {
    const listed = new Set(namesOf('disposable.txt'))
    const operators = OPERATOR_ROWS.flatMap(([, , , suffixes]) => suffixes.split(' '))
    const senders = ['facebookmail.com', 'apache.org', 'linkedin.com', 'github.com']
    expect([...operators, ...senders].filter(name => listed.has(name))).toEqual([])
  })

  test('disposable services are listed, each domain once for all its subdomains', () => {
    const listed = new Set(namesOf('disposable.txt'))
    const services = ['mailinator.com', 'yopmail.com', 'guerrillamail.com', 'temp-mail.org']
    expect(services.filter(name => !listed.has(name))).toEqual([])
    const covered = [...listed].filter(name =>
      withParents(name)
        .slice(1)
        .some(parent => listed.has(parent)),
    )
    expect(covered).toEqual([])
  })

  test('every name is found, and no other', () => {
    for (const list of ['disposable', 'free', 'role'] as const) {
      const names = namesOf(`${list}.txt`)
      const known = new Set(names)
      const some = names.filter((_, index) => index % 97 === 0 || index === names.length - 1)
      for (const name of some) {
        expect(isListed(list, name)).toBe(true)
        expect(isListed(list, `${name}-`)).toBe(false)
        expect(isListed(list, name.slice(0, -1))).toBe(known.has(name.slice(0, -1)))
      }
    }
    expect(isListed('free', '')).toBe(false)
  })
})
