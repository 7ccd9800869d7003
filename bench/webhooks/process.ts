import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A program of this folder in a process of its own, that is asked one thing after another. */
export type Helper = {
  ask<T = void>(question: string): Promise<T>
  end(): Promise<void>
}

export function start(program: string, ...args: string[]): Helper {
  const child = fork(join(import.meta.dirname, program), args)
  const ended = once(child, 'exit')
  return {
    async ask<T>(question: string) {
      child.send(question)
      const tooEarly = ended.then(([code]) => {
        throw new Error(`${program} ended with ${code} when asked for ${question}.`)
      })
      const [{ told }] = await Promise.race([once(child, 'message'), tooEarly])
      return told as T
    },
    // What it still waits for is the dead endpoint.
    async end() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** In such a process: answers questions by their names. */
export function answer(answers: Readonly<Record<string, () => unknown>>): void {
  // Whoever asks is gone.
  process.on('disconnect', () => process.exit())
  process.on('message', async (question: string) => {
    process.send?.({ told: await answers[question]?.() })
  })
}

/** User and system time of this process so far. */
export function busyMs(): number {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  return (userCPUTime + systemCPUTime) / 1_000
}

/** The most that this process took, by the kernel's own figure: that of `getrusage` begins with the parent's. */
export function peakRssMiB(): number {
  const [, kib] = /^VmHWM:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kib) / 1_024
}
