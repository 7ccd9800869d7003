import { globSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readYaml } from '../support/manifest.ts'
import { ROOT, readDoc } from '../support/markdown.ts'

type Step = { readonly uses?: string; readonly run?: string; readonly with?: object }
type Job = {
  readonly strategy?: { readonly matrix: { readonly os: string[]; readonly node: string[] } }
  readonly 'timeout-minutes': number
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}
type Workflow = {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const manifest = JSON.parse(readDoc('package.json'))

describe.each(globSync('.github/workflows/*.yml', { cwd: ROOT }))('%s', path => {
  const [workflow] = readYaml<Workflow>(path) as [Workflow]
  const jobs = Object.values(workflow.jobs)
  const steps = jobs.flatMap(job => job.steps)

  test('has no right to write, except to sign what it publishes', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' })
    for (const { permissions = {} } of jobs) {
      const { 'id-token': idToken, ...others } = permissions
      expect(Object.values(others).filter(right => right !== 'read')).toEqual([])
      expect(idToken === undefined || path.endsWith('publish.yml')).toBe(true)
    }
  })

  test('pins each action to a commit', () => {
    const actions = steps.flatMap(({ uses }) => uses ?? [])
    expect(actions.length).toBeGreaterThan(0)
    expect(actions.filter(action => !/@[0-9a-f]{40}$/.test(action))).toEqual([])
  })

  test('runs existing npm scripts, within a time limit', () => {
    const commands = steps.flatMap(({ run = '' }) => [...run.matchAll(/npm (?:run )?([\w:]+)/g)])
    const scripts = commands
      .map(match => match[1] as string)
      .filter(name => !['audit', 'ci', 'publish'].includes(name))
    expect(scripts).toContain('test')
    expect(scripts.filter(name => !(name in manifest.scripts))).toEqual([])
    expect(jobs.filter(job => !(job['timeout-minutes'] > 0))).toEqual([])
  })
})

test('the packages are published in the order in which they depend on one another', () => {
  const [{ jobs }] = readYaml<Workflow>('.github/workflows/publish.yml') as [Workflow]
  const commands = jobs.npm?.steps.flatMap(({ run }) => run ?? []).join('\n')
  expect(commands).toMatch(
    /npm test\nnpm run pack\nfor name in evmail-engine evmail-client evmail;/,
  )
  expect(jobs.npm?.permissions).toMatchObject({ 'id-token': 'write' })
  // npm trusts the workflow itself.
  expect(readDoc('.github/workflows/publish.yml')).not.toMatch(/secrets\.|TOKEN/)
})

test('CI covers every supported major version of Node on Linux and macOS', () => {
  const [{ jobs }] = readYaml<Workflow>('.github/workflows/ci.yml') as [Workflow]
  const [all, engine] = [jobs.test, jobs.engine].map(job => job?.strategy?.matrix)
  expect(all?.node).toEqual([/\d+/.exec(manifest.engines.node)?.[0], '24'])
  expect(engine?.node).toEqual(['20.19', ...(all?.node ?? [])])
  for (const matrix of [all, engine]) {
    expect(matrix?.os.map(name => name.split('-')[0])).toEqual(['ubuntu', 'macos'])
  }
})

test('updates are proposed for every kind of dependency', () => {
  const [{ updates }] = readYaml<{ updates: { 'package-ecosystem': string; directory: string }[] }>(
    '.github/dependabot.yml',
  ) as [{ updates: { 'package-ecosystem': string; directory: string }[] }]
  expect(updates.map(one => [one['package-ecosystem'], one.directory])).toEqual([
    ['npm', '/'],
    ['github-actions', '/'],
    ['docker', '/deploy'],
    ['docker-compose', '/deploy'],
  ])
})
