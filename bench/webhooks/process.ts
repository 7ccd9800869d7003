import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A program of this folder in a separate process, which answers one request at a time. */
export type ChildProgram = {
  ask<T = void>(request: string): Promise<T>
  end(): Promise<void>
}

export function start(program: string, ...args: string[]): ChildProgram {
  const child = fork(join(import.meta.dirname, program), args)
  const ended = once(child, 'exit')
  return {
    async ask<T>(request: string) {
      child.send(request)
      const exited = ended.then(([code]) => {
        throw new Error(`${program} ended with ${code} when asked for ${request}.`)
      })
      const [{ result }] = await Promise.race([once(child, 'message'), exited])
      return result as T
    },
    // It may be waiting for the unresponsive endpoint.
    async end() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Answers the requests of the parent process by name. */
export function answer(answers: Readonly<Record<string, () => unknown>>): void {
  // The parent process has exited.
  process.on('disconnect', () => process.exit())
  process.on('message', async (request: string) => {
    process.send?.({ result: await answers[request]?.() })
  })
}

/** Returns the user and system time of this process, in ms. */
export function getCpuMs(): number {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  return (userCPUTime + systemCPUTime) / 1_000
}

/**
 * Returns the peak memory from the kernel, as a child process inherits the peak of `getrusage` from
 * its parent.
 */
export function peakRssMiB(): number {
  const [, kib] = /^VmHWM:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kib) / 1_024
}
