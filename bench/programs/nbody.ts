'use task'

/** Planets that attract each other: objects with float fields, a double loop over few elements. */
export const size = 60_000
export const small = 20

interface Body {
  x: number
  y: number
  z: number
  vx: number
  vy: number
  vz: number
  mass: number
}

function system(): Body[] {
  const bodies: Body[] = []
  for (let i = 0; i < 5; i++) {
    const angle = i * 1.3
    const radius = i * 2.5
    bodies.push({
      x: radius * Math.cos(angle),
      y: radius * Math.sin(angle),
      z: i * 0.1,
      vx: -0.4 * Math.sin(angle),
      vy: 0.4 * Math.cos(angle),
      vz: 0,
      mass: i === 0 ? 39.47 : 0.01 * i,
    })
  }
  return bodies
}

function advance(bodies: Body[], dt: number, steps: number): void {
  for (let step = 0; step < steps; step++) {
    for (let i = 0; i < bodies.length; i++) {
      const a = bodies[i]!
      for (let j = i + 1; j < bodies.length; j++) {
        const b = bodies[j]!
        const dx = a.x - b.x
        const dy = a.y - b.y
        const dz = a.z - b.z
        const squared = dx * dx + dy * dy + dz * dz + 0.01
        const magnitude = dt / (squared * Math.sqrt(squared))
        a.vx -= dx * b.mass * magnitude
        a.vy -= dy * b.mass * magnitude
        a.vz -= dz * b.mass * magnitude
        b.vx += dx * a.mass * magnitude
        b.vy += dy * a.mass * magnitude
        b.vz += dz * a.mass * magnitude
      }
    }
    for (const body of bodies) {
      body.x += dt * body.vx
      body.y += dt * body.vy
      body.z += dt * body.vz
    }
  }
}

export function run(steps: number): number {
  const bodies = system()
  advance(bodies, 0.001, steps)
  let energy = 0
  for (const { vx, vy, vz, mass } of bodies) energy += 0.5 * mass * (vx * vx + vy * vy + vz * vz)
  return energy
}
