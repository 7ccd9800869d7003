import { describe, expect, test } from 'vitest'
import { type Reason, VERDICT_BY_REASON } from '../../src/engine/verdict/reason.ts'
import { toClass } from '../../src/engine/verdict/verdict.ts'
import { sampled } from '../support/property.ts'
import { type ListRequest, throughBulk, throughEngine, throughService } from './doors.ts'
import type { ListMail } from './list-mail.ts'
import { MIXED_LIST } from './scenarios.ts'

type Breaks = NonNullable<ListRequest['breaks']>

const broken = (what: string) => new Error(`${what} is broken`)

/** Questions for which `isBroken` returns true throw, or reject with `rejects`. */
const breakDns =
  (isBroken: (name: string, number: number) => boolean, rejects: boolean): Breaks =>
  ({ resolver }: ListMail) => {
    let questions = 0
    return {
      resolver: {
        ...resolver,
        resolve: (name, type, signal) => {
          if (!isBroken(name, questions++)) return resolver.resolve(name, type, signal)
          if (rejects) return Promise.reject(broken('the DNS'))
          throw broken('the DNS')
        },
      },
    }
  }

/** Connections for which `isBroken` returns true throw, or reject with `rejects`. */
const breakDial =
  (isBroken: (host: string, number: number) => boolean, rejects: boolean): Breaks =>
  ({ dial }: ListMail) => {
    let dials = 0
    return {
      dial: egress => ({
        ...dial(egress),
        connect: (to, signal) => {
          if (!isBroken(to.host, dials++)) return dial(egress).connect(to, signal)
          if (rejects) return Promise.reject(broken('the dial'))
          throw broken('the dial')
        },
      }),
    }
  }

const only = (number: number) => (_: string, at: number) => at === number
const at = (text: string) => (name: string) => name.includes(text)

/** One while the list is routed, and one while it is probed. */
const ONCE: readonly (readonly [name: string, breaks: Breaks])[] = [
  ['the first question of the DNS throws', breakDns(only(0), false)],
  ['a later question of the DNS rejects', breakDns(only(7), true)],
  ['the first connection throws', breakDial(only(0), false)],
  ['a later connection rejects', breakDial(only(7), true)],
]

const ALWAYS: readonly (readonly [name: string, affected: string, breaks: Breaks])[] = [
  ['question about a domain throws', '@grey.test', breakDns(at('grey.test'), false)],
  ['question about an exchanger rejects', '@d2.test', breakDns(at('mx.d2.test'), true)],
  ['connection to an exchanger throws', '@backed.test', breakDial(at('mx.backup'), false)],
  ['connection rejects', '.test', breakDial(() => true, true)],
]

const { texts, reasons: expected } = MIXED_LIST

/** `npm test` tries each fault through `verifyMany`, and through one of the other doors. */
const DOORS = [
  { name: throughEngine.name, door: throughEngine, share: 1, first: 0 },
  { name: throughBulk.name, door: throughBulk, share: 2, first: 0 },
  { name: throughService.name, door: throughService, share: 2, first: 1 },
]

describe.each(DOORS)('through $name', ({ door, share, first }) => {
  test.each(sampled(ONCE, share, first))(
    'each row has its correct result although %s',
    async (_, breaks) => {
      const { reasons, mail } = await door.verify({ ...MIXED_LIST, breaks })
      expect(reasons).toEqual(expected)
      expect(mail.open()).toBe(0)
    },
  )

  test.each(sampled(ALWAYS, share, first))(
    'only the affected rows are unknown if every %s',
    async (_, affected, breaks) => {
      const { reasons, mail } = await door.verify({ ...MIXED_LIST, breaks })
      const isAffected = (row: number) =>
        texts[row]?.includes(affected) && texts[row] !== 'user1@absent.test'
      const found = reasons.map((reason, row) => (isAffected(row) ? toClassOf(reason) : reason))
      expect(found).toEqual(expected.map((reason, row) => (isAffected(row) ? 'unknown' : reason)))
      expect(mail.open()).toBe(0)
    },
  )
})

const toClassOf = (reason: string | null) =>
  reason === null ? null : toClass(VERDICT_BY_REASON[reason as Reason])
