// Package profile has privacy profiles δ(ε) that are known at points: their convex hulls in e^ε, the pair of
// distributions with a polygonal profile, and means of profiles.
package profile
