import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { rolldown } from 'rolldown'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { emptyDatabase } from './support/database.ts'
import { emptyFolder, runEv } from './support/ev-process.ts'
import { codeBlocks, ROOT, readDoc, shownOutput } from './support/markdown.ts'
import { NODE_VERSIONS } from './support/node-versions.ts'
import { beginService } from './support/service-process.ts'

// Packs the npm packages, installs each into an empty project, and uses it there.

const MEGABYTE = 1_000_000
/** Aims. Packages include the installed one itself; sizes are of all files in node_modules. */
const LIMITS = {
  'evmail-engine': { dependencies: 6, packages: 14, bytes: 12.5 * MEGABYTE },
  'evmail-client': { dependencies: 0, packages: 1, bytes: 0.6 * MEGABYTE },
  evmail: { dependencies: 22, packages: 80, bytes: 70 * MEGABYTE },
} as const
/** The client with all that it imports, minified. */
const CLIENT_GZIP_BYTES = 12_000
/** Processor time of a program that loads the engine, in multiples of the start of Node. Measured: 2.6. */
const ENGINE_LOAD_MAX = 3.2
/** The variables of a workflow on GitHub. */
const REPOSITORY = {
  GITHUB_SERVER_URL: 'https://github.com',
  GITHUB_REPOSITORY: 'owner/name',
}

/** Version ranges that include Node 20: `>=18`, `20 || >=22`. */
const NODE_20 = /(^|\|\| )(>= ?(1?\d|20)|\^?20)(\D|$)/

type Name = keyof typeof LIMITS
const NAMES = Object.keys(LIMITS) as Name[]

const require = createRequire(import.meta.url)
const TYPESCRIPT = require.resolve('typescript/package.json')
/** Version 7 does not have node10 any more. */
const TYPESCRIPT_5 = createRequire(require.resolve('@arethetypeswrong/core')).resolve(
  'typescript/package.json',
)
/** Ways in which TypeScript finds a package. */
const RESOLUTIONS = [
  { name: 'nodenext', typescript: TYPESCRIPT, module: 'nodenext' },
  { name: 'node16', typescript: TYPESCRIPT_5, module: 'node16' },
  { name: 'bundler', typescript: TYPESCRIPT, module: 'esnext' },
  { name: 'node10', typescript: TYPESCRIPT_5, module: 'commonjs' },
]

const folder = emptyFolder()
const packages = join(folder, 'packages')
const project = (name: Name) => join(folder, `with-${name}`)
const installed = (name: Name, ...path: string[]) =>
  join(project(name), 'node_modules', name, ...path)
const manifestOf = (name: Name) => readJson(join(packages, name, 'package.json'))
const tarball = (name: Name) => join(packages, `${name}-${manifestOf(name).version}.tgz`)
let printed = ''

beforeAll(() => {
  expect(inject('buildFault')).toBe('')
  const environment = { ...process.env, ...REPOSITORY }
  printed = run(process.execPath, [join(ROOT, 'tools/pack.mjs'), packages], folder, environment)
  for (const name of NAMES) {
    mkdirSync(project(name))
    writeFileSync(join(project(name), 'package.json'), '{ "name": "app", "private": true }')
    // npm installs the versions of the lock file, which `npm ci` has put into its cache.
    cpSync(join(ROOT, 'package-lock.json'), join(project(name), 'package-lock.json'))
    const tarballs = name === 'evmail' ? NAMES.map(tarball) : [tarball(name)]
    const flags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
    npm(['install', ...flags, ...tarballs], project(name))
  }
})

describe.each(NAMES)('%s', name => {
  test('is small', () => {
    const { dependencies, packages: packagesMax, bytes } = LIMITS[name]
    expect(Object.keys(manifestOf(name).dependencies).length).toBeLessThanOrEqual(dependencies)
    expect(installedPackages(name).length).toBeLessThanOrEqual(packagesMax)
    expect(sizeOf(join(project(name), 'node_modules'))).toBeLessThanOrEqual(bytes)
  })

  test('runs no script when it is installed, except that of better-sqlite3', () => {
    const withScripts = installedPackages(name).filter(([, entry]) => entry.hasInstallScript)
    expect(withScripts.map(([path]) => path)).toEqual(
      name === 'evmail' ? ['node_modules/better-sqlite3'] : [],
    )
  })

  test.skipIf(name === 'evmail')('depends only on packages that support Node 20', () => {
    const ranges = installedPackages(name).map(([, { engines }]) => engines?.node ?? '>=0')
    expect(ranges.filter(range => !NODE_20.test(range))).toEqual([])
  })

  test('names its author, keywords and repository, and is published with its provenance', () => {
    expect(manifestOf(name)).toMatchObject({
      author: readJson(join(ROOT, 'package.json')).author,
      keywords: expect.arrayContaining(['email', 'verify']),
      repository: { type: 'git', url: 'git+https://github.com/owner/name.git' },
      publishConfig: { access: 'public', provenance: true },
    })
  })

  test('passes publint', async () => {
    const { messages } = await publint({
      pkgDir: join(packages, name),
      pack: false,
      strict: true,
    })
    expect(messages).toEqual([])
  })

  test('has types for every module resolution', async () => {
    const data = new Uint8Array(readFileSync(tarball(name)))
    const { problems = [] } = (await checkPackage(createPackageFromTarballData(data))) as {
      problems?: readonly unknown[]
    }
    expect(problems).toEqual([])
  })

  test('contains source maps, its license and only public declarations', () => {
    const files = readdirSync(installed(name), { recursive: true, encoding: 'utf8' })
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'CHANGELOG.md']))
    for (const ending of ['.d.ts', '.d.cts']) {
      const declarations = files.filter(file => file.endsWith(ending))
      expect(declarations).toHaveLength(name === 'evmail' ? 2 : 1)
    }
    const modules = files.filter(file =>
      /^dist\/(?!vendor|bundled|dashboard\/browser).*\.js$/.test(file),
    )
    const mapped = modules.filter(file => !isReexport(readFileSync(installed(name, file), 'utf8')))
    expect(mapped.length).toBeGreaterThan(0)
    expect(mapped.filter(file => !files.includes(`${file}.map`))).toEqual([])
  })
})

test('the printed lines install the packages from their files', () => {
  const file = (name: Name) => relative(folder, tarball(name))
  expect(printed.split('\n')).toEqual([
    `npm install ${file('evmail-engine')}`,
    `npm install ${file('evmail-client')}`,
    `npm install ${['evmail-engine', 'evmail-client', 'evmail'].map(name => file(name as Name)).join(' ')}`,
    '',
  ])
})

test('the bill of materials has all packages that are installed and all that the build contains', () => {
  const bom = readJson(join(packages, `evmail-${manifestOf('evmail').version}.cdx.json`))
  expect(bom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'evmail' } } })
  type Component = { readonly name: string; readonly version: string; readonly hashes?: unknown[] }
  const components = bom.components as readonly (Component & {
    readonly properties: readonly { readonly name: string }[]
  })[]
  const listed = new Set(components.map(({ name, version }) => `${name} ${version}`))
  const installedHere = installedPackages('evmail')
    .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')} ${version}`)
    .filter(one => !one.startsWith('evmail'))
  expect(installedHere.filter(one => !listed.has(one))).toEqual([])
  const bundled = components.filter(one => one.properties.some(({ name }) => name === 'ev:bundled'))
  expect(bundled.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['hono', 'kysely', 'zod', 'openid-client', 'htmx.org', 'uplot']),
  )
  expect(components.filter(({ hashes = [] }) => hashes.length === 0)).toEqual([])
})

test('each module is in one package', () => {
  const modules = NAMES.flatMap(sourcesOf)
  expect(modules.length).toBeGreaterThan(500)
  expect(modules.length).toBe(new Set(modules).size)
})

describe('the packages', () => {
  const examples = [
    ...programsIn('docs/client.md').slice(0, 1),
    ...programsIn(readmeOf('evmail-client')),
  ]
  const programs = {
    'evmail-engine': [
      `import { createEngine, presentResult, type EngineOptions, type Result } from 'evmail-engine'
      const options: EngineOptions = { sandbox: true }
      const engine = createEngine(options)
      const result: Result = await engine.verify('valid@example.com')
      const reason: string = presentResult(result).reason
      for await (const { verdict } of engine.verifyMany([reason])) console.log(verdict.risk)
      await engine.close()`,
    ],
    'evmail-client': examples.filter(text => text.includes("from 'evmail-client'")),
    evmail: [
      `import { createEngine, presentResult, type Result } from 'evmail'
      import { EvClient } from 'evmail/client'
      const engine = createEngine({ sandbox: true })
      const result: Result = await engine.verify('valid@example.com')
      const client = new EvClient({ apiKey: 'ev_live_a', baseUrl: presentResult(result).reason })
      const { plan } = await client.credits()
      console.log(plan)`,
    ],
  }

  test.each(RESOLUTIONS)(
    'compile in strict TypeScript with $name',
    ({ name, typescript, module }) => {
      expect(programs['evmail-client']).toHaveLength(2)
      const files = Object.entries(programs).flatMap(([dependency, texts]) =>
        texts.map((text, index) => {
          const file = join(project(dependency as Name), `${name}-${index}.ts`)
          writeFileSync(file, asModule(text))
          return file
        }),
      )
      const { stdout } = spawnSync(
        process.execPath,
        [
          join(typescript, '../bin/tsc'),
          ...['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'],
          ...['--module', module, '--moduleResolution', name, '--target', 'es2022'],
          ...['--lib', 'es2022,dom,dom.iterable,dom.asynciterable,esnext.disposable'],
          ...['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')],
          ...files,
        ],
        { cwd: folder, encoding: 'utf8' },
      )
      expect(stdout).toBe('')
    },
  )
})

describe('evmail-engine', () => {
  test('runs the example of its README', () => {
    const [program = ''] = programsIn(readmeOf('evmail-engine'))
    expect(runProgram('evmail-engine', program)).toEqual(shownOutput(program))
  })

  test.each([{ path: process.execPath, version: process.version }, ...NODE_VERSIONS])(
    'is loaded by require() in Node $version',
    ({ path }) => {
      const program = `
        const { classOf, createEngine } = require('evmail-engine')
        const engine = createEngine({ sandbox: true })
        engine.verify('valid@example.com').then(({ verdict }) => console.log(classOf(verdict)))`
      expect(runIn('evmail-engine', ['-e', program], path)).toEqual('deliverable\n')
    },
  )

  test('says what to do in a bundle without its lists', async () => {
    const file = join(project('evmail-engine'), 'bundled.js')
    writeFileSync(file, `import { createEngine } from 'evmail-engine'; createEngine()`)
    const bundle = await rolldown({ input: file, platform: 'node' })
    await bundle.write({ dir: join(folder, 'bundle'), entryFileNames: '[name].mjs' })
    const program = `import('../bundle/bundled.mjs').catch(error => console.log(error.code, error.message))`
    expect(runIn('evmail-engine', ['-e', program])).toBe(
      'bad_config The built-in list role.txt of evmail-engine cannot be read: no such file or directory. ' +
        'If a bundler made this program, mark evmail-engine as external and deploy node_modules with it. ' +
        'Otherwise, reinstall the package.\n',
    )
  })

  test('loads fast', () => {
    const program = `
      const cpuTime = () => Object.values(process.cpuUsage()).reduce((sum, one) => sum + one)
      const before = cpuTime()
      await import('evmail-engine')
      console.log(cpuTime() / before)`
    const ratios = [1, 2, 3, 4, 5].map(() =>
      Number(runIn('evmail-engine', ['--input-type=module', '-e', program])),
    )
    expect(Math.min(...ratios)).toBeLessThan(ENGINE_LOAD_MAX)
  })
})

describe('evmail-client', () => {
  test('is loaded by require(), and rejects a missing key', () => {
    const program = `
      const { EvClient } = require('evmail-client')
      try { new EvClient({ apiKey: process.env.NONE, baseUrl: 'http://127.0.0.1' }) }
      catch (error) { console.log(error.message) }`
    const printed = runIn('evmail-client', ['-e', program])
    expect(printed).toMatch(/^apiKey must be an API key/)
  })

  test('is small in a bundle, and uses nothing of Node', async () => {
    const bundle = await rolldown({
      input: installed('evmail-client', 'dist/index.js'),
      platform: 'browser',
    })
    const { output } = await bundle.generate({ format: 'es', minify: true })
    expect(output).toHaveLength(1)
    expect(output[0].imports).toEqual([])
    expect(gzipSync(output[0].code).length).toBeLessThanOrEqual(CLIENT_GZIP_BYTES)
  })
})

describe('evmail', () => {
  const launcher = installed('evmail', 'bin/ev.js')

  test('verifies an address and a list', async () => {
    const home = emptyFolder()
    const one = await runEv(['verify', '--sandbox', '--json', 'valid@example.com'], {
      home,
      launcher,
    })
    expect(JSON.parse(one.stdout).reason).toBe('accepted_email')
    writeFileSync(join(home, 'list.csv'), 'email\nrole@example.com\n')
    const list = await runEv(['bulk', 'list.csv', '--sandbox', '--data-dir', 'data'], {
      home,
      launcher,
    })
    expect(list).toMatchObject({ code: 0 })
    expect(readFileSync(join(home, 'list.verified.csv'), 'utf8')).toContain('role_account')
  })

  test.each(['SQLite', 'PostgreSQL'])('serves the API with %s', async database => {
    const home = emptyFolder()
    const args = database === 'SQLite' ? [] : ['--database', await emptyDatabase()]
    const service = beginService(home, args, { launcher })
    await service.isUp
    const { url } = service
    const [program = ''] = programsIn(readmeOf('evmail-client'))
    const environment = { EV_KEY: service.key }
    const own = program.replace('http://127.0.0.1:8080', url)
    expect(runProgram('evmail-client', own, environment)).toEqual(shownOutput(program))
    expect(await operationsOf(await fetch(`${url}/openapi.json`))).toEqual(
      await operationsOf(new Response(readDoc('docs/openapi.json'))),
    )
    const docs = await (await fetch(`${url}/docs`)).text()
    const assets = /\/assets\/\w+\//.exec(docs)?.[0]
    for (const path of [
      '/metrics',
      `${assets}htmx.js`,
      `${assets}docs-search.json`,
      '/docs/webhooks',
    ]) {
      expect((await fetch(`${url}${path}`)).status, path).toBe(200)
    }
    expect(await service.end('SIGTERM')).toMatchObject({ code: 0 })
  })

  test.each(NODE_VERSIONS.filter(({ version }) => version.startsWith('v20.')))(
    'says in Node $version which one it needs',
    async ({ path, version }) => {
      expect(await runEv(['--version'], { home: emptyFolder(), launcher, node: path })).toEqual({
        code: 70,
        signal: null,
        stdout: '',
        stderr: `error: ev needs Node 22.19 or newer; this is ${version.slice(1)}. Install a newer Node.\n`,
      })
    },
  )

  test('names the package that a scenario needs', async () => {
    const home = emptyFolder()
    const hosts = { 'mx.a.test': { behavior: 'polite', engine: 'smtp-server' } }
    writeFileSync(join(home, 'world.json'), JSON.stringify({ domains: {}, hosts }))
    const { stderr } = await runEv(['simulate', 'world.json'], { home, launcher })
    expect(stderr).toContain('Run: npm install smtp-server')
  })

  test.each(['require', 'import'])('exports the engine and the client to %s()', load => {
    const program = `
      const namesOf = async name => Object.keys(await ${load}(name))
      Promise.all(['evmail', 'evmail/client'].map(namesOf)).then(names => console.log(names.join()))`
    expect(runIn('evmail', ['-e', program])).toBe(
      'EvError,classOf,createEngine,decide,presentResult,EvApiError,EvClient,EvConnectionError,EvWebhookError,verifyWebhook\n',
    )
  })
})

/** The operations of an OpenAPI document. */
async function operationsOf(response: Response): Promise<unknown> {
  const { paths } = (await response.json()) as { readonly paths: unknown }
  return paths
}

/** Whether a module only exports names of others; comments are not code. */
const isReexport = (code: string) =>
  code
    .split('\n')
    .every(line => /^(import .*|export .* from .*|export \{.*\};?|\/\/.*|)$/.test(line))

/** The source files in the source maps of a package. */
function sourcesOf(name: Name): string[] {
  return readdirSync(installed(name, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.js.map'))
    .flatMap(file => {
      const { sources } = readJson(installed(name, 'dist', file)) as { readonly sources: string[] }
      return sources.map(source => source.replace(/^.*src\//, ''))
    })
}

function readmeOf(name: Name): string {
  return `tools/packages/${name}/README.md`
}

/** The JavaScript examples of a page. */
function programsIn(page: string): string[] {
  return codeBlocks(page).flatMap(({ language, text }) => (language === 'js' ? [text] : []))
}

/** Runs a program in the project and returns the lines that it prints. */
function runProgram(name: Name, program: string, environment = {}): string[] {
  const args = ['--input-type=module', '-e', program]
  return runIn(name, args, process.execPath, environment).trim().split('\n')
}

/** Runs Node in the project, without the environment of this one. Returns the output. */
function runIn(name: Name, args: readonly string[], node = process.execPath, environment = {}) {
  return run(node, args, project(name), { PATH: process.env.PATH, ...environment })
}

/** Puts what follows the imports into a function: CommonJS has no `await` outside of functions. */
const asModule = (program: string) =>
  `${program.replace(/(?:^ *import .*\n)+/m, '$&export async function run() {\n')}\n}`

type Installed = {
  readonly version?: string
  readonly engines?: { readonly node?: string }
  readonly hasInstallScript?: boolean
}

/** The packages in the project with their entries of npm's lock file. */
function installedPackages(name: Name): [string, Installed][] {
  const { packages } = readJson(join(project(name), 'node_modules/.package-lock.json'))
  return Object.entries(packages as Record<string, Installed>)
}

function sizeOf(path: string): number {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map(file => statSync(join(path, file)))
    .reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0)
}

function npm(args: readonly string[], cwd = folder) {
  return run('npm', args, cwd, process.env)
}

/** Runs a program to its end, and returns its output. */
function run(
  program: string,
  args: readonly string[],
  cwd = folder,
  env: NodeJS.ProcessEnv = process.env,
) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
  return stdout
}

function readJson(file: string) {
  expect(existsSync(file), file).toBe(true)
  return JSON.parse(readFileSync(file, 'utf8'))
}
