import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { cutProxy } from '../support/cut-proxy.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { ask } from '../support/postgres-server.ts'

async function setUp() {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  await ask(url, 'create table note (text text)')
  onTestFinished(async () => {
    await proxy.close()
    await ask(url, 'drop table note')
  })
  const notes = async () => (await ask(url, 'select text from note')).map(one => one.text)
  const client = async () => {
    const one = new pg.Client(proxy.url)
    one.on('error', () => {})
    await one.connect()
    return one
  }
  return { proxy, notes, client }
}

test('cuts a connection after COMMIT, before COMMIT or after some bytes, freezes it, and refuses new ones', async () => {
  const { proxy, notes, client } = await setUp()
  const note = async (text: string) => {
    const one = await client()
    await one.query('begin')
    await one.query('insert into note values ($1)', [text])
    await one.query('commit')
    await one.end()
  }
  await note('passes')

  const cutAfter = proxy.cutAfterCommit(/insert into note/)
  await ask(proxy.url, 'begin; commit')
  await expect(note('committed, answer lost')).rejects.toThrow(/terminated|ECONNRESET/)
  await cutAfter

  const cutBefore = proxy.cutBeforeCommit()
  await expect(note('rolled back')).rejects.toThrow(/terminated|ECONNRESET/)
  await cutBefore
  expect(await notes()).toEqual(['passes', 'committed, answer lost'])

  const one = await client()
  const cutInAnswer = proxy.cutAfterBytes(100)
  await expect(one.query(`select repeat('a', 1000)`)).rejects.toThrow(/terminated|ECONNRESET/)
  await cutInAnswer

  const other = await client()
  proxy.freeze()
  const answer = other.query('select 1 as one')
  // A direct connection to the server answers another query meanwhile.
  expect(await Promise.race([answer, notes()])).toHaveLength(2)
  proxy.thaw()
  expect((await answer).rows).toEqual([{ one: 1 }])

  const ended = new Promise(resolve => other.once('end', () => resolve(null)))
  proxy.refuse()
  await ended
  await expect(client()).rejects.toThrow()
  proxy.accept()
  await (await client()).end()
})
