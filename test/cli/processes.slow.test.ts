import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { emptyDatabase } from '../support/database.ts'
import { emptyFolder, runEv, startEv } from '../support/ev-process.ts'
import { startService } from '../support/service-process.ts'

const DATA = ['--data-dir', 'data']
const CREATE = ['accounts', 'create', ...DATA, '--name']

/** A folder and the environment that selects its database. */
type Place = { readonly home: string; readonly environment: Readonly<Record<string, string>> }

describe.each<[string, () => Promise<Place>]>([
  ['a file', async () => ({ home: emptyFolder(), environment: {} })],
  [
    'on PostgreSQL',
    async () => ({ home: emptyFolder(), environment: { EV_DATABASE: await emptyDatabase() } }),
  ],
])('a database %s', (_, create) => {
  const names = async (place: Place) => {
    const { stdout } = await runEv(['accounts', '--json', ...DATA], place)
    return (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)
  }

  test('opened by several processes at once is migrated once', async () => {
    const place = await create()
    const made = ['a', 'b', 'c', 'd'].map(name => runEv([...CREATE, name], place))
    for (const ran of await Promise.all(made)) expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect((await names(place)).sort()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('whose migration was killed is migrated by the next process', async () => {
    const place = await create()
    for (const delayMs of [150, 300, 450]) {
      const { child } = startEv([...CREATE, `killed after ${delayMs} ms`], place)
      const ended = once(child, 'close')
      await setTimeout(delayMs)
      child.kill('SIGKILL')
      await ended
    }
    expect(await runEv([...CREATE, 'Shop'], place)).toMatchObject({ code: 0, stderr: '' })
    expect(await names(place)).toContain('Shop')
  })
})

test('a data directory has one service, until its process ends or is killed', async () => {
  const home = emptyFolder()
  const first = await startService(home)
  const second = await runEv(['serve', '--listen', '127.0.0.1:0', ...DATA], { home })
  expect([second.code, second.stderr]).toEqual([
    74,
    expect.stringContaining('Another "ev serve" is running'),
  ])
  await first.end('SIGKILL')
  const third = await startService(home)
  expect(await third.end('SIGTERM')).toMatchObject({ code: 0 })
})
