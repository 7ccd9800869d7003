import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../src/platform/clock.ts'
import {
  clientOf,
  createListEngine,
  prepareBulk,
  prepareService,
  readReasons,
  untilDone,
  untilFinished,
  untilSettled,
  untilTrue,
} from './doors.ts'
import type { ListMail } from './list-mail.ts'
import { MIXED_LIST } from './scenarios.ts'

const { texts, reasons } = MIXED_LIST
/** Recipients after which a list is interrupted, of 80. */
const ASKED_BEFORE = 25

const countAsked = (mail: ListMail) => mail.asked().size

/** Checks that each address was asked once, and twice where the server greylists. */
function expectNothingRepeated(mail: ListMail): void {
  const isRepeated = ([to, times]: readonly [string, number]) =>
    times !== (to.endsWith('@grey.test') ? 2 : 1)
  expect([...mail.asked()].filter(isRepeated)).toEqual([])
}

describe('ev bulk that is stopped', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)(
    'by %s is continued by the same command, and asks for nothing again',
    async signal => {
      const { mail, clock, start, readReasons } = prepareBulk(MIXED_LIST)
      const first = start()
      await untilTrue(clock, mail, () => countAsked(mail) >= ASKED_BEFORE)
      first.signal(signal)
      const stopped = await untilSettled(clock, mail, first.ended)
      expect(stopped.code, stopped.stderr).toBeGreaterThan(128)
      expect(mail.open()).toBe(0)
      expect(countAsked(mail)).toBeLessThan(texts.length - 2)
      const last = await untilSettled(clock, mail, start().ended)
      expect(last.code, last.stderr).toBe(0)
      expect(readReasons()).toEqual(reasons)
      expectNothingRepeated(mail)
    },
  )
})

describe('a list of a service', () => {
  test('is continued by the next start, and asks for nothing again', async () => {
    const { mail, clock, start } = prepareService(MIXED_LIST)
    const first = await start()
    const { job_id } = await clientOf(first).batch([...texts])
    await untilTrue(clock, mail, () => countAsked(mail) >= ASKED_BEFORE)
    await untilSettled(clock, mail, first.close())
    expect(mail.open()).toBe(0)
    expect(countAsked(mail)).toBeLessThan(texts.length - 2)
    const second = await start(first.key)
    await untilSettled(clock, mail, untilFinished(second, clock, job_id))
    expect(await readReasons(second, job_id)).toEqual(reasons)
    expectNothingRepeated(mail)
    await untilSettled(clock, mail, second.close())
  })

  test('that is cancelled asks for nothing more, and keeps its results', async () => {
    const { mail, clock, start } = prepareService(MIXED_LIST)
    const service = await start()
    const { job_id } = await clientOf(service).batch([...texts])
    await untilTrue(clock, mail, () => countAsked(mail) >= ASKED_BEFORE)
    await clientOf(service).jobs.cancel(job_id)
    await untilTrue(clock, mail, () => mail.open() === 0)
    const asked = countAsked(mail)
    await clock.advance(10 * MINUTE)
    expect(countAsked(mail)).toBe(asked)
    expect(asked).toBeLessThan(texts.length - 2)
    const found = await readReasons(service, job_id)
    expect(found).toHaveLength(texts.length)
    expect(found.filter(reason => reason !== null).length).toBeGreaterThan(0)
    expect(found.filter((reason, row) => reason !== null && reason !== reasons[row])).toEqual([])
    await untilSettled(clock, mail, service.close())
  })

  test('that is cancelled and resumed has a result for each row', async () => {
    const { mail, clock, start } = prepareService(MIXED_LIST)
    const service = await start()
    const { job_id } = await clientOf(service).batch([...texts])
    await untilTrue(clock, mail, () => countAsked(mail) >= ASKED_BEFORE)
    await clientOf(service).jobs.cancel(job_id)
    await clientOf(service).jobs.resume(job_id)
    await untilSettled(clock, mail, untilFinished(service, clock, job_id))
    expect(await readReasons(service, job_id)).toEqual(reasons)
    await untilSettled(clock, mail, service.close())
  })

  test('that is deleted asks for nothing more, and others continue', async () => {
    const { mail, clock, start } = prepareService(MIXED_LIST)
    const service = await start()
    const client = clientOf(service)
    const other = await client.batch(['user1@other.test', 'nonsense'])
    const { job_id } = await client.batch([...texts])
    await untilTrue(clock, mail, () => countAsked(mail) >= ASKED_BEFORE)
    await client.jobs.cancel(job_id)
    await client.jobs.delete(job_id)
    await untilTrue(clock, mail, () => mail.open() === 0)
    const asked = countAsked(mail)
    await untilSettled(clock, mail, untilFinished(service, clock, other.job_id))
    await clock.advance(10 * MINUTE)
    expect(countAsked(mail)).toBe(asked)
    await expect(client.jobs.get(job_id)).rejects.toMatchObject({ status: 404 })
    expect(await readReasons(service, other.job_id)).toEqual(['invalid_domain', 'invalid_email'])
    await untilSettled(clock, mail, service.close())
  })
})

describe('verifyMany', () => {
  test.each(['a break', 'an abort', 'a closed engine'])(
    'that %s ends asks for nothing more',
    async end => {
      const { engine, mail, clock } = createListEngine(MIXED_LIST)
      const abort = new AbortController()
      const found: string[] = []
      const walk = async () => {
        for await (const { email } of engine.verifyMany(texts, { signal: abort.signal })) {
          found.push(email)
          if (found.length < ASKED_BEFORE) continue
          if (end === 'a break') return
          if (end === 'an abort') abort.abort(new Error('enough'))
          else void engine.close()
        }
      }
      const walking = untilDone(clock, walk())
      if (end === 'a break') await walking
      else await expect(walking).rejects.toThrow()
      await untilDone(clock, engine.close())
      const asked = countAsked(mail)
      await clock.advance(10 * MINUTE)
      expect({ open: mail.open(), asked: countAsked(mail) }).toEqual({ open: 0, asked })
      expect(new Set(found).size).toBe(found.length)
    },
  )
})
