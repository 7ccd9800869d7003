import { describe, expect, test } from 'vitest'
import { loadSdk } from '../../src/cli/mcp.ts'
import { emptyFolder, runEv } from '../support/cli.ts'

describe('ev mcp', () => {
  test('without its package names the command that installs it', async () => {
    const absent = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    await expect(loadSdk(() => Promise.reject(absent))).rejects.toMatchObject({
      ...{ code: 'usage', message: expect.stringContaining('npm install @modelcontextprotocol') },
    })
    const broken = new Error('broken')
    await expect(loadSdk(() => Promise.reject(broken))).rejects.toBe(broken)
  })

  test.each([
    [['--url', 'https://ev.example.com'], {}, 'Set EV_KEY in the environment'],
    [['--url', 'ev.example.com'], { EV_KEY: 'ev_live_x' }, 'baseUrl must be the URL'],
  ])('%j is refused', async (args, environment, message) => {
    const { code, stderr } = await runEv(['mcp', ...args], { home: emptyFolder(), environment })
    expect(code).toBe(64)
    expect(stderr).toContain(message)
  })

  test('ends with its input', async () => {
    const options = { home: emptyFolder(), stdin: '', offline: true }
    expect(await runEv(['mcp', '--sandbox'], options)).toMatchObject({ code: 0, stdout: '' })
  })
})
