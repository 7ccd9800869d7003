import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { cutProxy } from '../support/cut-proxy.ts'
import { tempPostgres } from '../support/database.ts'
import { ask } from '../support/postgres-server.ts'

async function services() {
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

test('a connection is cut after its commit, before it, in the midst, held up, and refused', async () => {
  const { proxy, notes, client } = await services()
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
  await expect(note('kept, and nobody was told')).rejects.toThrow(/terminated|ECONNRESET/)
  await cutAfter

  const cutBefore = proxy.cutBeforeCommit()
  await expect(note('gone')).rejects.toThrow(/terminated|ECONNRESET/)
  await cutBefore
  expect(await notes()).toEqual(['passes', 'kept, and nobody was told'])

  const one = await client()
  const inTheMidst = proxy.cutAfterBytes(100)
  await expect(one.query(`select repeat('a', 1000)`)).rejects.toThrow(/terminated|ECONNRESET/)
  await inTheMidst

  const other = await client()
  proxy.freeze()
  const answer = other.query('select 1 as one')
  // Straight to the server another question is answered meanwhile.
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
