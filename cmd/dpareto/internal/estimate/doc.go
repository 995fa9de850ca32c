// Package estimate holds the commands dpareto estimate: they estimate the utility of private
// linear models as a function of ε.
package estimate
