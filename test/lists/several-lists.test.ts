import { describe, expect, test } from 'vitest'
import {
  clientOf,
  createListEngine,
  prepareBulk,
  prepareService,
  readReasons,
  untilDone,
  untilFinished,
  untilSettled,
} from './doors.ts'
import { BANNED_LISTS, LISTS_AT_ONE_OPERATOR } from './scenarios.ts'

const { long, short, request } = LISTS_AT_ONE_OPERATOR

test('lists at one operator share its connections, and a short one does not wait for a long one', async () => {
  const { mail, clock, start } = prepareService(request)
  const service = await start()
  const [first, second] = [
    await clientOf(service).batch([...long.texts]),
    await clientOf(service).batch([...short.texts]),
  ]
  for (const { job_id } of [first, second]) {
    await untilSettled(clock, mail, untilFinished(service, clock, job_id))
  }
  expect(await readReasons(service, first.job_id)).toEqual(long.reasons)
  expect(await readReasons(service, second.job_id)).toEqual(short.reasons)
  const lastOfShort = mail.recipients().findLastIndex(to => short.texts.includes(to))
  expect(lastOfShort).toBeLessThan(long.texts.length / 2)
  expect(mail.peak('192.0.2.1')).toBeLessThanOrEqual(2)
  expect([...mail.asked().values()].every(times => times === 1)).toBe(true)
  expect(mail.randomAsked()).toEqual(new Map([['one.test', 1]]))
  await untilSettled(clock, mail, service.close())
})

test('streams of one engine share the connections of an operator, and a short one ends first', async () => {
  const { engine, mail, clock } = createListEngine(request)
  const ended: string[] = []
  const collect = async (name: string, texts: readonly string[]) => {
    const found = new Map<string, string>()
    for await (const { email, verdict } of engine.verifyMany(texts)) {
      found.set(email, verdict.reason)
    }
    ended.push(name)
    return texts.map(text => found.get(text))
  }
  const both = Promise.all([collect('long', long.texts), collect('short', short.texts)])
  const [ofLong, ofShort] = await untilDone(clock, both)
  expect(ofLong).toEqual(long.reasons)
  expect(ofShort).toEqual(short.reasons)
  expect(ended).toEqual(['short', 'long'])
  expect(mail.peak('192.0.2.1')).toBe(2)
  expect([...mail.asked().values()].every(times => times === 1)).toBe(true)
})

describe('a server that rejects everyone for a time after too many unknown recipients is noticed', () => {
  const { first, second, request } = BANNED_LISTS

  test('by a service that was restarted', async () => {
    const { mail, clock, start } = prepareService(request)
    let key: string | undefined
    for (const { texts, reasons } of [first, second]) {
      const service = await start(key)
      key = service.key
      const { job_id } = await clientOf(service).batch([...texts])
      await untilSettled(clock, mail, untilFinished(service, clock, job_id))
      expect(await readReasons(service, job_id)).toEqual(reasons)
      await untilSettled(clock, mail, service.close())
    }
  })

  test('by the next ev bulk', async () => {
    const { mail, clock, start, setList, readReasons } = prepareBulk(request)
    for (const { texts, reasons } of [first, second]) {
      setList(texts)
      const ran = await untilSettled(clock, mail, start().ended)
      expect(ran.code, ran.stderr).toBe(0)
      expect(readReasons()).toEqual(reasons)
    }
  })
})
